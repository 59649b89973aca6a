"""What a user installs is what the repository holds."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from dig import __version__

ROOT = Path(__file__).parents[1]


def build(directory: Path, *options: str) -> None:
    """Build into `directory`, from there: at the root, `build` could be a folder of that name."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory)]
    done = subprocess.run(
        [*command, *options, str(ROOT)], cwd=directory, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def only(directory: Path, pattern: str) -> Path:
    (found,) = directory.glob(pattern)
    return found


def in_wheel(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def in_sdist(sdist: Path) -> set[str]:
    """The files, without the folder `dig_monitor-<version>/` around them."""
    with tarfile.open(sdist) as archive:
        return {entry.name.partition("/")[2] for entry in archive if entry.isfile()}


def below_dig(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith("dig/")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the repository."""
    directory = tmp_path_factory.mktemp("wheel")
    build(directory, "--wheel")
    return only(directory, "*.whl")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist; beside it lies the wheel that `build` made from it."""
    directory = tmp_path_factory.mktemp("sdist")
    build(directory)
    return only(directory, "*.tar.gz")


@pytest.fixture(scope="module")
def source_files() -> set[str]:
    """Every file below dig/ that git knows or would add."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing says which files belong to the package")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "dig"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    files = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    assert "dig/py.typed" in files
    return files


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path, source_files: set[str]) -> None:
    """The wheel puts one name into a user's environment, with every file below it."""
    names = in_wheel(wheel)

    assert below_dig(names) == source_files
    outside = {name.split("/")[0] for name in names} - {"dig"}
    assert [name.endswith(".dist-info") for name in outside] == [True], outside


def test_the_sdist_holds_the_package(sdist: Path, source_files: set[str]) -> None:
    """The sdist holds every file of the package; the root's links hide none and add none."""
    names = in_sdist(sdist)

    assert below_dig(names) == source_files
    assert not {name.split("/")[0] for name in names} & {
        "detectors",
        "faults",
        "runtime",
        "tasks",
        "traces",
    }
    assert {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml"} <= names


def test_a_wheel_from_the_sdist_is_the_same(sdist: Path, wheel: Path) -> None:
    """Whoever builds from the sdist installs the same files."""
    assert in_wheel(only(sdist.parent, "*.whl")) == in_wheel(wheel)


def test_an_index_takes_sdist_and_wheel(sdist: Path) -> None:
    """Names, metadata and the description are as an index wants them."""
    files = [*sdist.parent.glob("*.whl"), sdist]
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_version_is_the_same_everywhere() -> None:
    """The changelog, the citation and the page on security speak of it."""
    short = __version__.rpartition(".")[0]
    assert f"\n## [{__version__}]\n" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n| {short} | yes |\n" in (ROOT / "SECURITY.md").read_text()


@pytest.mark.parametrize("page", ["AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "llms.txt"])
def test_a_page_of_the_root_names_what_is_there(page: str) -> None:
    """Its links, and the targets of `make` in it."""
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert links and all((ROOT / link).exists() for link in links)
    makefile = (ROOT / "Makefile").read_text()
    for targets in re.findall(r"make ((?:[a-z-]+ ?)+)", text):
        for target in targets.split():
            assert f"\n{target}:" in makefile, target
