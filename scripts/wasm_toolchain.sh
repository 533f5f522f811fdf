#!/bin/sh
# Finds a compiler for wasm32-wasip1, and runs a command with it: rustup's where it has the target, else Debian's, unpacked
# into .cache/wasm-toolchain. Needs no root.
#
#     sh scripts/wasm_toolchain.sh cargo build --target wasm32-wasip1 ...
#
# Exits with 75 (EX_TEMPFAIL) and a reason in the last line if neither can be had.
set -eu
cd "$(dirname "$0")/.."
target=wasm32-wasip1

if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    exec "$@"
fi

unavailable() {
    echo "playground: skipped, no Rust for $target here: $1; with rustup: rustup target add $target"
    exit 75
}

root=$PWD/.cache/wasm-toolchain
debian=$root/debian

# An archive of its own for apt: the machine may run another release, whose compiler is too old or has no such target.
unpack() {
    rm -rf "$root"
    mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial" "$root/apt/preferences.d" "$debian"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    # The machine's own mirror.
    mirror=$(apt-get indextargets --format '$(SITE)' | grep '/debian/*$' | head -n 1)
    [ -n "$mirror" ] || return 1
    echo "deb [signed-by=$keys] $mirror sid main" >"$root/apt/sources.list"
    : >"$root/apt/status"
    cat >"$root/apt/apt.conf" <<CONF
Dir::State "$root/apt";
Dir::State::Lists "lists";
Dir::State::status "$root/apt/status";
Dir::Cache "$root/apt";
Dir::Etc::SourceList "$root/apt/sources.list";
Dir::Etc::SourceParts "/nowhere";
Dir::Etc::Preferences "/nowhere";
Dir::Etc::PreferencesParts "$root/apt/preferences.d";
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Install-Recommends "false";
Acquire::Languages "none";
APT::Sandbox::User "root";
CONF
    export APT_CONFIG="$root/apt/apt.conf"
    apt-get update -qq >&2 || return 1
    # What the compiler needs to start. Build scripts and macros are linked with the machine's own C compiler.
    names=$(apt-cache depends --recurse --important rustc libstd-rust-dev-wasm32 lld | awk '
        /^[^ ]/ { of = $1 }
        /^ *(Pre)?Depends: [^<]/ { needs[of] = needs[of] " " $2 }
        function take(name,    each, i, n) {
            if (name in taken || name ~ /^(gcc|libc-dev|binutils)$/) return
            taken[name] = 1
            print name
            n = split(needs[name], each)
            for (i = 1; i <= n; i++) take(each[i])
        }
        END { take("rustc"); take("libstd-rust-dev-wasm32"); take("lld") }')
    # shellcheck disable=SC2086 # a list of names
    (cd "$root/apt/archives" && apt-get download -qq $names >&2) || return 1
    unset APT_CONFIG
    for package in "$root"/apt/archives/*.deb; do
        dpkg-deb --extract "$package" "$debian"
    done
    rm -rf "$root/apt"
}

# Their libraries are newer than the machine's: each program starts with its own loader.
wrapper() {
    cat >"$root/$1" <<WRAPPER
#!/bin/sh
exec "$debian/usr/lib64/ld-linux-x86-64.so.2" --argv0 "$1" --library-path "$debian/usr/lib/x86_64-linux-gnu" \\
    "$debian/usr/bin/$1" "\$@"
WRAPPER
    chmod +x "$root/$1"
}

if [ ! -f "$root/ready" ]; then
    [ "$(uname -m)" = x86_64 ] || unavailable 'Debian has it for x86_64 only'
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || unavailable 'no apt-get and dpkg-deb'
    unpack || unavailable 'Debian cannot be reached'
    wrapper rustc
    wrapper wasm-ld
    "$root/rustc" --version >&2 || unavailable "Debian's compiler does not start"
    touch "$root/ready"
fi
export RUSTC="$root/rustc" CARGO_TARGET_WASM32_WASIP1_LINKER="$root/wasm-ld"
exec "$@"
