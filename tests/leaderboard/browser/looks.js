// Text of the page whose contrast against its ground is below 4.5 (3 when large): WCAG 2.2, 1.4.3.
() => {
  const rgba = (text) => {
    const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    if (text.startsWith("color(srgb")) for (let i = 0; i < 3; i++) n[i] *= 255;
    return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => {
      const part = c / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    const layers = [];
    for (let node = element; node; node = node.parentElement) {
      const colour = rgba(getComputedStyle(node).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    // Icons are names in a font of their own; a canvas holds its text for screen readers only.
    if (!text || element.closest("canvas, script, style, noscript, svg, [aria-hidden=true]")) continue;
    if (element.closest("[data-testid=stIconMaterial], [disabled], [aria-disabled=true]")) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const colour = rgba(style.color);
    for (let node = element; node; node = node.parentElement) {
      colour[3] *= Number(getComputedStyle(node).opacity);
    }
    const under = ground(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const seen = ratio(over(colour, under), under);
    if (seen < (large ? 3 : 4.5)) found.push(`${seen.toFixed(2)} ${text.slice(0, 60)}`);
  }
  return found;
}
