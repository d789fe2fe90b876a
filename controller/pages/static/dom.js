// Small ways to build elements. Text always goes in as text, so nothing a node says can become markup.

export const byId = (id) => document.getElementById(id);

// An element: make("span", {class: "word", title: "…"}, "text", child, …)
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Ask a question in the page's one dialog; the answer's text, or null.
export function ask({ title, text, yes, value = "", secret = false }) {
  const dialog = byId("ask");
  byId("ask-title").textContent = title;
  byId("ask-text").textContent = text;
  byId("ask-yes").textContent = yes;
  const input = byId("ask-value");
  input.type = secret ? "password" : "text";
  input.value = value;
  input.required = true;
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? input.value : null), { once: true });
    dialog.showModal();
    input.focus();
  });
}
