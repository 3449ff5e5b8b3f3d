"""Sphinx extension: launch buttons, and the links that fetch the course on a hub.

Both need the address of the repository, ``repository.url`` in _config.yml. As long as
it is empty no page has a button, and a link shows where the address belongs. The theme
forms the addresses of the buttons; :func:`hub_address` forms one for nbgitpuller.
"""

from pathlib import Path
from urllib.parse import urlencode

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

KNOWN_HOSTS = ("bitbucket", "github", "gitlab")
HUB, REPOSITORY = "https://YOUR-HUB", "https://YOUR-HOST/YOUR-NAME/YOUR-COPY"


def settle(app, config) -> None:
    options = config.html_theme_options
    url = (options.get("repository_url") or "").strip("/").removesuffix(".git")
    branch = options.get("repository_branch") or "main"
    hub = (options.get("launch_buttons", {}).get("jupyterhub_url") or "").strip("/")
    options |= {"repository_url": url, "repository_branch": branch}
    if not url:
        options.pop("launch_buttons", None)  # the theme cannot form their addresses
    elif not any(host in url for host in KNOWN_HOSTS):
        # The theme refuses a host that it does not know. Under this name it forms
        # addresses for Binder and for a hub that hold for every host.
        options.setdefault("repository_provider", "gitlab")
    config.launch_from = [hub, url, branch]


def drop_logos(app, pagename, templatename, context, doctree) -> None:
    """A button says its service in words; the picture beside them says nothing more."""
    for group in context.get("header_buttons", []):
        if group.get("label") == "launch-buttons":
            for button in group["buttons"]:
                button.pop("icon", None)


def hub_address(hub: str, url: str, branch: str, path: str) -> str:
    """The address at which nbgitpuller fetches a repository and opens a file of it."""
    name = url.rpartition("/")[2]
    what = {"repo": url, "branch": branch, "urlpath": f"lab/tree/{name}/{path}"}
    return f"{hub}/hub/user-redirect/git-pull?{urlencode(what, safe='/:')}"


class HubLink(SphinxDirective):
    """``{hub-link} labs/workbooks/part-1.ipynb``: the address, as far as known."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = self.arguments[0]
        if not (Path(self.env.srcdir) / path).is_file():
            raise self.error(f"a hub cannot open {path}: there is no such file")
        hub, url, branch = self.config.launch_from
        address = hub_address(hub or HUB, url or REPOSITORY, branch, path)
        block = nodes.literal_block(address, address, language="text")
        if not (hub and url):
            return [block]
        link = nodes.reference("", "Follow it yourself.", refuri=address)
        return [block, nodes.paragraph("", "", link)]


def setup(app):
    app.add_config_value("launch_from", ["", "", "main"], "env")
    app.add_directive("hub-link", HubLink)
    app.connect("config-inited", settle)
    app.connect("html-page-context", drop_logos, priority=900)  # the theme: 501
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
