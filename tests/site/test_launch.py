"""Launch buttons and links for a hub lead to files that exist, or are not there.

Also: what the services behind them, and the workflow that publishes, need at the root.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import launch
import pytest
import yaml
from bs4 import BeautifulSoup

from tests.site.small_book import ROOT, Change, build, make_book, page

HUB = "https://hub.example.org"
TEACH = page("# For teachers\n\n```{hub-link} book/first.ipynb\n```\n")
NOTEBOOKS, PAGES = ["first", "second"], ["first", "second", "page0"]
# A repository, as somebody may write it -> how Binder names it.
HOSTS = {
    "https://github.com/an-owner/a-course": "gh/an-owner/a-course",
    "https://github.com/an-owner/a-course.git/": "gh/an-owner/a-course",
    "https://gitlab.com/an-owner/a-course": "gl/an-owner%2Fa-course",
    "https://git.example.org/an-owner/a-course": (
        "git/https%3A//git.example.org/an-owner/a-course"
    ),
}


def addressed(url: str, hub: str) -> Change:
    """These addresses in the settings, whatever this copy of the course has there."""

    def change(folder: Path) -> None:
        path = folder / "_config.yml"
        text = path.read_text(encoding="utf-8")
        for key, value in {"url": url, "jupyterhub_url": hub}.items():
            text, found = re.subn(rf"(?m)^  {key}: .*$", f'  {key}: "{value}"', text)
            assert found == 1
        path.write_text(text, encoding="utf-8")

    return change


def built(folder: Path, url: str, hub: str) -> Path:
    addressed(url, hub)(folder)
    status, said = build(folder)
    assert status == 0, said
    return folder


@pytest.fixture(scope="module")
def without(tmp_path_factory) -> Path:
    return built(make_book(tmp_path_factory.mktemp("without"), [TEACH]), "", "")


@pytest.fixture(scope="module", params=["github", "another host"])
def launched(request, without, tmp_path_factory) -> tuple[Path, str]:
    """The same book at an address; nothing in it runs again."""
    url = list(HOSTS)[1 if request.param == "github" else 3]
    folder = tmp_path_factory.mktemp("launched") / "book"
    shutil.copytree(without, folder)
    return built(folder, url, f"{HUB}/"), url


def soup(book: Path, name: str) -> BeautifulSoup:
    path = book / "_build" / "html" / "book" / f"{name}.html"
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def buttons(book: Path, name: str) -> dict[str, str]:
    """What a button says -> where it leads."""
    links = soup(book, name).select(".article-header-buttons a[href*='://']")
    return {link.get_text(strip=True): link["href"] for link in links}


def requests(book: Path, name: str) -> list[str]:
    """What the page loads from another host."""
    loads = soup(book, name).find_all(["script", "link", "img", "iframe", "source"])
    found = [tag.get(key, "") for tag in loads for key in ("src", "href")]
    return [url for url in found if re.match(r"(https?:)?//", url)]


@pytest.mark.parametrize("name", PAGES)
def test_without_an_address_there_is_no_button(without: Path, name: str):
    assert buttons(without, name) == {}
    assert not soup(without, name).select(".fa-rocket, [class*=launch]")
    assert requests(without, name) == []


def test_without_an_address_the_link_is_a_pattern(without: Path):
    article = soup(without, "page0").article
    assert launch.HUB in article.text and launch.REPOSITORY in article.text
    assert not article.select("a[href*='git-pull']")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_buttons_lead_to_files_that_exist(launched, name: str):
    book, url = launched
    found = buttons(book, name)
    assert set(found) == {"Binder", "JupyterHub"}
    assert not soup(book, name).select(".article-header-buttons img")
    binder = urlsplit(found["Binder"])
    assert binder.path == f"/v2/{HOSTS[url]}/main"
    assert_exists(book, parse_qs(binder.query)["urlpath"][0], "lab/tree/")
    assert_pulls(book, found["JupyterHub"], url)
    assert requests(book, name) == []


def test_a_page_that_does_not_run_has_no_button(launched):
    assert buttons(launched[0], "page0") == {}


def test_the_link_for_a_hub_leads_to_a_file_that_exists(launched):
    book, url = launched
    [link] = soup(book, "page0").article.select("a[href*='git-pull']")
    assert_pulls(book, link["href"], url)


def assert_pulls(book: Path, address: str, url: str) -> None:
    parts = urlsplit(address)
    assert f"{parts.scheme}://{parts.netloc}" == HUB
    assert parts.path == "/hub/user-redirect/git-pull"
    asked = parse_qs(parts.query)
    assert asked["repo"] == [url.strip("/").removesuffix(".git")]
    assert asked["branch"] == ["main"]
    assert_exists(book, asked["urlpath"][0], "lab/tree/a-course/")


def assert_exists(book: Path, urlpath: str, before: str) -> None:
    assert urlpath.startswith(before)
    assert (book / unquote(urlpath.removeprefix(before))).is_file()


@pytest.mark.parametrize(("url", "name"), HOSTS.items())
def test_an_address_may_be_written_in_several_ways(url: str, name: str):
    class Config:
        html_theme_options = {"repository_url": url}

    launch.settle(None, Config)
    assert Config.launch_from == ["", url.strip("/").removesuffix(".git"), "main"]
    known = any(host in url for host in launch.KNOWN_HOSTS)
    assert ("repository_provider" in Config.html_theme_options) != known


# --- what the services find at the root ------------------------------------------


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_repo2docker_finds_its_files():
    """A folder named binder would hide them; a local path makes it copy first."""
    assert not (ROOT / "binder").exists() and not (ROOT / ".binder").exists()
    assert re.fullmatch(r"python-3\.\d+\n", read("runtime.txt"))
    assert "-e ./shared" in read("requirements.txt").splitlines()


def test_the_workflow_pins_what_it_uses():
    text = read(".github/workflows/pages.yml")
    jobs = yaml.safe_load(text)["jobs"].values()
    steps = [step for job in jobs for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used and all(re.fullmatch(r"[\w/-]+@v\d+\.\d+\.\d+", use) for use in used)
    assert all(job["runs-on"] == "ubuntu-24.04" for job in jobs)
    [python] = [s["with"]["python-version"] for s in steps if "setup-python" in str(s)]
    assert f"python-{python.rpartition('.')[0]}\n" == read("runtime.txt")
    assert [step["run"] for step in steps if "run" in step] == ["make book", ".ci/run"]
    [path] = [s["with"]["path"] for s in steps if "upload-pages" in str(s)]
    assert path == "_build/html"
    assert "secrets." not in text
