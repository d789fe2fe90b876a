// Make what is shown equal to what was rendered anew, and touch only what differs: focus, selection and scroll stay.

const name = (node) => (node.nodeType === 1 ? node.dataset.key || node.id || "" : "");

// Make `old` equal to `fresh`, which is of another document.
export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName) {
    old.replaceWith(document.importNode(fresh, true));
    return;
  }
  if (old.nodeType !== 1) {
    old.data = fresh.data;
    return;
  }
  attributes(old, fresh);
  children(old, fresh);
}

function attributes(old, fresh) {
  for (const { name: each, value } of fresh.attributes) if (old.getAttribute(each) !== value) old.setAttribute(each, value);
  for (const { name: each } of [...old.attributes]) if (!fresh.hasAttribute(each) && each !== "open") old.removeAttribute(each);
}

// Children with a name are found again wherever they are; others by their place.
function children(old, fresh) {
  const named = new Map([...old.children].map((child) => [name(child), child]).filter(([key]) => key));
  let here = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = name(wanted);
    const found = key ? named.get(key) : here && !name(here) && here.nodeName === wanted.nodeName ? here : null;
    if (!found) {
      old.insertBefore(document.importNode(wanted, true), here);
      continue;
    }
    if (found === here) here = here.nextSibling;
    else old.insertBefore(found, here);
    morph(found, wanted);
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}
