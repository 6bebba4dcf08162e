// Shows the page in its frame, at the part that the address names: the page itself runs no script that could.
const frame = document.querySelector("iframe");
const show = () => { frame.src = frame.dataset.page + location.hash; };
if (frame) { show(); addEventListener("hashchange", show); }
