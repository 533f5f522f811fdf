"""Write the bills of materials of a release, in CycloneDX: `python -m scripts.sboms DIST OUT`.

That of a wheel lists its crates; maturin writes it into the wheel, and here it gets a file of its own. That of the
image lists the packages of requirements/serve.lock, and needs cyclonedx-py on the path.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

__all__ = ["of_image", "of_wheel", "write_sboms"]

ROOT = Path(__file__).parents[1]


def of_wheel(wheel: Path) -> str:
    """Return the bill of a wheel's crates.

    Raises:
        ValueError: It has none, or the bill has no crates.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if "/sboms/" in name and name.endswith(".cyclonedx.json")]
        if len(names) != 1:
            raise ValueError(f"{wheel.name} has {len(names)} bills of its crates in .dist-info/sboms, and needs one")
        text = archive.read(names[0]).decode()
    bill = json.loads(text)
    if bill.get("bomFormat") != "CycloneDX" or not bill.get("components"):
        raise ValueError(f"{wheel.name}: {names[0]} lists no crates")
    return text


def of_image() -> str:
    """Return the bill of what the image installs beside the wheel."""
    lock = ROOT / "requirements/serve.lock"
    command = ["cyclonedx-py", "requirements", "--output-reproducible", "--output-format", "JSON", str(lock)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write_sboms(dist: Path, out: Path) -> list[Path]:
    """Write a file for each wheel with crates, and one for the image.

    Args:
        dist: The folder of the wheels.
        out: Where to write; it is created.

    Returns:
        The files.

    Raises:
        ValueError: There is no wheel, or one has no bill.
    """
    wheels = sorted(dist.glob("kueuecore-*.whl"))
    if not wheels:
        raise ValueError(f"{dist} has no wheel of kueuecore")
    out.mkdir(parents=True, exist_ok=True)
    bills = {f"{wheel.stem}.cdx.json": of_wheel(wheel) for wheel in wheels}
    bills["kueuecore-image.cdx.json"] = of_image()
    for name, text in bills.items():
        (out / name).write_text(text, "utf-8")
    return [out / name for name in bills]


if __name__ == "__main__":
    for file in write_sboms(Path(sys.argv[1]), Path(sys.argv[2])):
        print(file)
