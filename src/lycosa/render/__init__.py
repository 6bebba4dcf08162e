"""Rendering: a browser runs the scripts of pages that have been fetched; what it makes of them is what is read.

Fetch first, render second: a page is fetched as every page is, and then handed to the browser (`Rendering`). Nothing
that the browser asks for goes to the network by itself: `SubresourceGate` has it fetched by the crawl, as a requisite
of the page, with robots.txt, delays, the address guard, limits and the archive. `RenderFamilies` learns where rendering
adds anything. Browsers are driven by a process of its own (`render.browser`, with `render.tab`), to which `BrowserLink`
speaks: only there Playwright is imported, and only when a page is rendered.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.render.browser_link import require_browser
    from lycosa.render.rendering import Rendering

__getattr__ = open_lazily(__name__, {"browser_link": "require_browser", "rendering": "Rendering"})

__all__ = ["Rendering", "require_browser"]
