"""What mkdocs asks while it builds the site: pages that are made, pages and pictures from outside docs/, and links between them.

Links are written as they lead in the tree, so that they work in an editor and on a code host; here they are turned to where the same
file lies in the site, or to the repository for files that the site has not.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

from tests.site import reference

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages at the root of the tree that are pages of the site."""
MADE = {
    "reference/commands.md": reference.commands,
    "reference/console.md": reference.console,
    "reference/kinds.md": reference.kinds,
}
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give pages of docs/ that the navigation does not name a place at its end, so that none is out of reach."""
    named = str(config.nav)
    more = sorted(
        path.name for path in (ROOT / "docs").glob("*.md") if f"'{path.name}'" not in named
    )
    if more and config.nav is not None:
        config.nav.append({"More": more})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is not in docs/: made pages, pages of the root, pictures."""
    for name, make in MADE.items():
        files.append(File.generated(config, name, content=make()))
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    for picture in sorted((ROOT / "screenshots").glob("*.png")):
        name = f"screenshots/{picture.name}"
        files.append(File.generated(config, name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page to where they lead in the site."""
    name = page.file.src_uri
    if name in MADE:
        return markdown
    folder = PurePosixPath("." if name in PAGES else "docs")
    return _LINK.sub(lambda found: _turned(found[1], folder, config, files), markdown)


def _turned(link: str, folder: PurePosixPath, config: MkDocsConfig, files: Files) -> str:
    path = (ROOT / folder / link).resolve().relative_to(ROOT).as_posix()
    inside = path.removeprefix("docs/")
    if files.get_file_from_path(inside) is not None:
        return inside
    return f"{config.repo_url}/blob/main/{path}" if (ROOT / path).exists() else link
