// A timeline: decision lines in causal order, with the raw kernel line under the event that it proves.

import { keep, make } from "./dom.js";
import { day, evidence, sentence, time, tone, weight } from "./words.js";

export function drawStory(parent, lines, name) {
  if (!lines.length) {
    parent.replaceChildren(make("p", { class: "empty" }, "Nothing has happened yet."));
    return;
  }
  if (!parent.querySelector(":scope > ol")) parent.replaceChildren(make("ol", { class: "lines" }));
  const list = parent.querySelector(":scope > ol");
  keep(list, lines.map((line, place) => ({ line, place })), ({ line, place }) => `${place}/${line.kind}`, create, (item, { line }) => {
    item.dataset.tone = tone(weight(line));
    const [stamp, kind, who, text, proof] = item.children;
    stamp.textContent = time(line.at);
    stamp.title = `${day(line.at)} ${new Date(line.at * 1000).toISOString()}`;
    kind.textContent = line.kind;
    who.textContent = name(line.subject);
    text.textContent = sentence(line, name);
    proof.textContent = evidence(line).join("\n");
    proof.hidden = !proof.textContent;
  });
}

const create = () =>
  make("li", {}, make("time"), make("span", { class: "kind" }), make("span", { class: "who" }), make("span", { class: "what" }), make("pre", { class: "proof" }));
