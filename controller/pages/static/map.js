// The map of tiles: which node a change is about, and the arrow keys, so that ten thousand tiles are no tab stops.

export function tiles() {
  let nodes = null; // GPU -> node, made when it is first asked for
  document.addEventListener("keydown", move);
  return {
    nodeOf(subject) {
      if (subject?.node) return subject.node;
      nodes ??= places();
      return nodes.get(subject?.gpu);
    },
    forget() {
      nodes = null;
    },
  };
}

function places() {
  const found = new Map();
  for (const item of document.querySelectorAll(".map > li"))
    for (const tile of item.querySelectorAll(".t")) found.set(decodeURIComponent(tile.pathname.slice(6)), item.id.slice(2));
  return found;
}

function move(event) {
  const item = document.activeElement?.closest?.(".map > li");
  if (!item) return;
  const stops = [...item.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  const to = {
    ArrowRight: () => stops[at + 1] ?? item.nextElementSibling?.querySelector("a"),
    ArrowLeft: () => stops[at - 1] ?? [...(item.previousElementSibling?.querySelectorAll("a") ?? [])].pop(),
    ArrowDown: () => item.nextElementSibling?.querySelectorAll("a")[at],
    ArrowUp: () => item.previousElementSibling?.querySelectorAll("a")[at],
  }[event.key]?.();
  if (!to) return;
  event.preventDefault();
  to.focus();
}
