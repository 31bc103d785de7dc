// PNG to stored values: a browser would cut 16 bits down to 8. Grey of 8 and 16 bits and RGB, not interlaced, which is
// all that this server sends (PNG specification, W3C, sections 9 and 11).
export async function decodePng(buffer) {
  const view = new DataView(buffer);
  let at = 8, width = 0, height = 0, depth = 0, kind = 0;
  const parts = [];
  while (at + 12 <= buffer.byteLength) {
    const length = view.getUint32(at), name = view.getUint32(at + 4), data = at + 8;
    if (name === 0x49484452) { // IHDR
      width = view.getUint32(data); height = view.getUint32(data + 4);
      depth = view.getUint8(data + 8); kind = view.getUint8(data + 9);
    } else if (name === 0x49444154) parts.push(new Uint8Array(buffer, data, length)); // IDAT
    at = data + length + 4;
  }
  const samples = kind === 2 ? 3 : kind === 0 ? 1 : 0;
  if (!samples || (depth !== 8 && depth !== 16)) throw new Error("another kind of PNG");
  const inflated = new Blob(parts).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new Uint8Array(await new Response(inflated).arrayBuffer());
  const step = samples * depth / 8, line = width * step;
  const out = new Uint8Array(line * height);
  for (let row = 0; row < height; row++) unfilter(raw, out, row, line, step);
  if (depth === 8) return { width, height, samples, values: out };
  const values = new Uint16Array(width * height * samples);
  for (let i = 0; i < values.length; i++) values[i] = out[2 * i] << 8 | out[2 * i + 1];
  return { width, height, samples, values };
}

function unfilter(raw, out, row, line, step) {
  const filter = raw[row * (line + 1)], from = row * (line + 1) + 1, to = row * line;
  for (let i = 0; i < line; i++) {
    const left = i >= step ? out[to + i - step] : 0;
    const above = row ? out[to + i - line] : 0;
    let guess = 0;
    if (filter === 1) guess = left;
    else if (filter === 2) guess = above;
    else if (filter === 3) guess = (left + above) >> 1;
    else if (filter === 4) guess = nearest(left, above, row && i >= step ? out[to + i - line - step] : 0);
    out[to + i] = raw[from + i] + guess;
  }
}

function nearest(left, above, corner) {
  const guess = left + above - corner;
  const a = Math.abs(guess - left), b = Math.abs(guess - above), c = Math.abs(guess - corner);
  return a <= b && a <= c ? left : b <= c ? above : corner;
}
