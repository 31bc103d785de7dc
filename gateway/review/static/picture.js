// Frames: fetched once, kept while this page is open and nowhere else, and turned into what a screen shows.
import { decodePng } from "./png.js";

const MOST_BYTES = 192 * 2 ** 20;
const kept = new Map(); // address -> promise of a frame, the oldest first
let bytes = 0;

// {width, height, samples, values, low, step, inverted}; stored value = sample * step + low
export function frameOf(key, name, frame, side) {
  const address = `/study/${key}/frame/${name}/${frame}/${side}`;
  const found = kept.get(address) ?? fetched(address);
  kept.delete(address);
  kept.set(address, found);
  return found;
}

async function fetched(address) {
  try {
    const answer = await fetch(address, { cache: "no-store" });
    if (answer.status === 401) location.replace("/login");
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const told = (name) => Number(answer.headers.get(name));
    const picture = await decodePng(await answer.arrayBuffer());
    bytes += picture.values.byteLength;
    for (const [old, promise] of kept) {
      if (bytes <= MOST_BYTES || old === address) break;
      kept.delete(old);
      promise.then((one) => { bytes -= one.values.byteLength; }, () => {});
    }
    return { ...picture, low: told("x-low"), step: told("x-step"), inverted: told("x-inverted") === 1 };
  } catch (error) {
    kept.delete(address); // asked for again the next time
    throw error;
  }
}

// Level and width that show what lies between the half percentiles of a grey frame, in stored values.
export function usualWindow(picture) {
  if (picture.samples === 3) return { level: 128, width: 256 };
  const counts = new Uint32Array(picture.values instanceof Uint8Array ? 256 : 65536);
  for (const value of picture.values) counts[value]++;
  const edge = picture.values.length * 0.005;
  let low = 0, high = counts.length - 1;
  for (let seen = 0; low < high && (seen += counts[low]) <= edge;) low++;
  for (let seen = 0; high > low && (seen += counts[high]) <= edge;) high--;
  const width = Math.max(1, high - low) * picture.step;
  return { level: low * picture.step + picture.low + width / 2, width };
}

// RGBA pixels of a frame in a window (linear, PS3.3 C.11.2.1.2, without its half steps).
export function shown(picture, { level, width }) {
  const { values, samples } = picture;
  const out = new ImageData(picture.width, picture.height);
  const pixels = new Uint32Array(out.data.buffer);
  if (samples === 3) {
    for (let i = 0, at = 0; i < pixels.length; i++, at += 3) {
      pixels[i] = 0xff000000 | values[at + 2] << 16 | values[at + 1] << 8 | values[at];
    }
    return out;
  }
  const shades = new Uint32Array(values instanceof Uint8Array ? 256 : 65536);
  for (let i = 0; i < shades.length; i++) {
    const unit = (i * picture.step + picture.low - (level - width / 2)) / Math.max(width, 1e-9);
    let shade = Math.round(255 * Math.min(1, Math.max(0, unit)));
    if (picture.inverted) shade = 255 - shade;
    shades[i] = 0xff000000 | shade << 16 | shade << 8 | shade;
  }
  for (let i = 0; i < pixels.length; i++) pixels[i] = shades[values[i]];
  return out;
}

// The frame before, dimmed, with what differs in red; null where the two cannot be compared pixel by pixel.
export function difference(before, after, window) {
  const alike = ["width", "height", "samples"].every((name) => before[name] === after[name]);
  if (!alike) return null;
  const out = shown(before, window), pixels = out.data;
  let changed = 0;
  for (let i = 0, at = 0; at < pixels.length; i++, at += 4) {
    let same = true;
    for (let sample = 0; sample < before.samples; sample++) {
      const place = i * before.samples + sample;
      same &&= before.values[place] * before.step + before.low === after.values[place] * after.step + after.low;
    }
    if (same) {
      pixels[at] /= 3; pixels[at + 1] /= 3; pixels[at + 2] /= 3;
    } else {
      pixels[at] = 255; pixels[at + 1] = 70; pixels[at + 2] = 70;
      changed++;
    }
  }
  return { pixels: out, changed, share: changed / (before.width * before.height) };
}
