#!/bin/sh
# Put a Rust compiler of Debian's, with the standard library of aarch64, into FOLDER, and print its rustc: for machines that
# reach Debian's packages but not rustup's server. Nothing is installed, and nothing outside FOLDER changes.
#
#     debian_rust.sh FOLDER
#
# Exits with 75 if it cannot be had.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -x "$folder/rustc" ] && { echo "$folder/rustc"; exit 0; }
[ "$(uname -sm)" = 'Linux x86_64' ] && command -v apt-get >/dev/null && command -v dpkg >/dev/null || exit 75

root="$folder/root" apt="$folder/apt"
rm -rf "$root" "$apt"
mkdir -p "$root" "$apt/lists/partial" "$apt/archives/partial"
# The system's own sources, with lists and archives of our own, which also know arm64.
set -- -qq -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o APT::Architectures::=amd64 -o APT::Architectures::=arm64
# A source that has no arm64, or that cannot be reached, does not matter.
apt-get "$@" update >/dev/null 2>&1 || true

# Bookworm has a compiler of today beside its own; newer releases do without.
package=""
for each in rustc-web rustc; do
    version=$(apt-cache "$@" policy "$each" | awk '$1 == "Candidate:" { print $2 }')
    if printf '%s\n' "$version" | awk -F. '{ exit !($1 * 1000 + $2 >= 1088) }'; then package=$each && break; fi
done
[ -n "$package" ] || exit 75
library="libstd-rust$(printf '%s' "$package" | sed 's/rustc//')-dev"
# The compiler with what it needs and the system lacks, and the library alone: its dependencies are for running.
apt-get "$@" install --download-only --no-install-recommends --yes "$package=$version" >/dev/null
(cd "$apt/archives" && apt-get "$@" download "$library:arm64=$version" >/dev/null)
for each in "$apt/archives"/*.deb; do dpkg-deb --extract "$each" "$root"; done
rm -rf "$apt"

libraries="$root/usr/lib/x86_64-linux-gnu"
cat >"$folder/rustc.new" <<END
#!/bin/sh
LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "$root/usr/bin/rustc" "\$@"
END
chmod +x "$folder/rustc.new"
"$folder/rustc.new" --version >&2
mv "$folder/rustc.new" "$folder/rustc"
echo "$folder/rustc"
