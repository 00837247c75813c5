// Loads each page of `setting.pages` in a frame, and writes what is wrong with it into an element with the id `found`.

const number = (text) => (text.match(/[\d.]+/g) || []).map(Number);

function luminance([r, g, b]) {
  const linear = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function over([r, g, b, a = 1], below) {
  return [r, g, b].map((v, i) => v * a + below[i] * (1 - a));
}

function behind(element, view) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.unshift(number(view.getComputedStyle(e).backgroundColor));
  return layers.reduce((below, colour) => over(colour, below), [255, 255, 255]);
}

function contrast(element, view) {
  const ground = behind(element, view);
  const pair = [luminance(over(number(view.getComputedStyle(element).color), ground)), luminance(ground)].sort();
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}

function scrolls(element, view) {
  for (let e = element.parentElement; e; e = e.parentElement) {
    if (/auto|scroll|hidden/.test(view.getComputedStyle(e).overflowX) && e.scrollWidth >= e.clientWidth) return true;
  }
  return false;
}

const named = (e) => `<${e.tagName.toLowerCase()}> ${(e.textContent || e.src || "").trim().slice(0, 60).replace(/\s+/g, " ")}`;

function* wrong(frame) {
  const view = frame.contentWindow, page = view.document, width = page.documentElement.clientWidth;
  if (page.documentElement.scrollWidth > width + 1) yield `the page is ${page.documentElement.scrollWidth} wide, not ${width}`;
  for (const image of page.images) if (image.complete && !image.naturalWidth) yield `no picture ${image.getAttribute("src")}`;
  for (const e of page.querySelectorAll("article *")) {
    const box = e.getBoundingClientRect();
    if (!box.width || view.getComputedStyle(e).visibility === "hidden") continue;
    if (box.right > width + 1 && !scrolls(e, view)) yield `stands out: ${named(e)}`;
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (own && !e.closest("svg, .headerlink, .md-clipboard, button")) {
      const found = contrast(e, view);
      if (found < setting.contrast) yield `contrast ${found.toFixed(1)}: ${named(e)}`;
    }
  }
}

async function main() {
  const found = [];
  for (const page of setting.pages) {
    const frame = document.createElement("iframe");
    frame.style = `width: ${setting.width}px; height: 1000px; border: 0`;
    frame.src = page;
    document.body.append(frame);
    await new Promise((done) => (frame.onload = done));
    await new Promise((done) => setTimeout(done, 100));
    const told = new Set(wrong(frame));
    found.push(...[...told].map((text) => `${page}: ${text}`));
    frame.remove();
  }
  const shown = document.createElement("pre");
  shown.id = "found";
  shown.textContent = found.join("\n");
  document.body.append(shown);
}

main();
