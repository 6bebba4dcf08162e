"""The application of `ground.app` once more, made with React, its router and Vite: built by npm."""

import shutil
import subprocess
from pathlib import Path

from lycosa.errors import LycosaError
from proof.ground.app import AppServer

PACKAGES = ("react@19", "react-dom@19", "react-router-dom@7", "vite@7", "@vitejs/plugin-react@5")
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_INDEX = """<!doctype html><html><head><title>App</title></head>
<body><div id="root"></div><script type="module" src="/src/main.jsx"></script></body></html>"""
_CONFIG = """import react from "@vitejs/plugin-react";
export default { plugins: [react()] };"""
_MAIN = """
import { lazy, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, Route, Routes } from "react-router-dom";
const Item = lazy(() => import("./item.jsx"));
createRoot(document.getElementById("root")).render(
  <BrowserRouter><Suspense fallback="loading"><Routes>
    <Route path="/" element={<Item />} /><Route path="/item/:number" element={<Item />} />
  </Routes></Suspense></BrowserRouter>);
"""
_ITEM = """
import { useEffect, useState } from "react";
import { Link, useLocation } from "react-router-dom";
export default function Item() {
  const { pathname } = useLocation(), [page, setPage] = useState(null);
  useEffect(() => { fetch("/api" + pathname).then(answer => answer.json()).then(setPage); }, [pathname]);
  if (!page) return <p>loading</p>;
  return <main><h1>{page.title}</h1><p>{page.text}</p>
    <ul>{page.links.map(link => <li key={link}><Link to={link}>{link}</Link></li>)}</ul></main>;
}
"""


def build(folder: Path) -> Path:
    """Builds the application; returns the folder of what is served. LycosaError where npm is missing or fails."""
    npm = shutil.which("npm")
    if npm is None:
        raise LycosaError("there is no npm on the path, which builds the React application")
    (folder / "src").mkdir(parents=True)
    files = {"index.html": _INDEX, "vite.config.js": _CONFIG, "src/main.jsx": _MAIN, "src/item.jsx": _ITEM}
    for name, text in {**files, "package.json": '{"private": true, "type": "module"}'}.items():
        (folder / name).write_text(text)
    for words in (["install", "--no-audit", "--no-fund", "--silent", *PACKAGES], ["exec", "--", "vite", "build"]):
        done = subprocess.run([npm, *words], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LycosaError(f"npm {words[0]} failed: {(done.stderr or done.stdout)[-500:]}")
    return folder / "dist"


def install(app: AppServer, dist: Path) -> None:
    """Has a server serve what was built."""
    app.shell = (dist / "index.html").read_text()
    for file in dist.rglob("*"):
        if file.is_file() and file.name != "index.html":
            app.files[f"/{file.relative_to(dist)}"] = 200, _TYPES.get(file.suffix, "text/plain"), file.read_text()
