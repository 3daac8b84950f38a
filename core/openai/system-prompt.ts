import { fnv32a } from '../names/fnv';

type Members = Readonly<Record<string, unknown>>;

const SLOTS = 512;
const MAX_REMEMBERED = 16 * 1024;

/**
 * The text that requests are grouped by: the first `system` or `developer` message, with its content parts
 * joined, or `instructions`. Null if there is none (docs/design/batch-path.md#order-of-sending).
 */
function systemPrompt(body: Members): string | null {
  const instructions = body['instructions'];
  return (
    firstSystemText(body['messages']) ??
    (typeof instructions === 'string' ? instructions : null) ??
    firstSystemText(body['input'])
  );
}

/**
 * A function that returns FNV-32a of the UTF-8 text of a body's system prompt, or 0 if there is none. Most
 * batches have few prompts, so it caches up to 512 of them, of at most 16 KiB each, with their hashes:
 * comparing 2 KB takes a tenth of the time of hashing them.
 */
export function createPrefixHasher(): (body: Members) => number {
  const texts = new Array<string | undefined>(SLOTS);
  const hashes = new Uint32Array(SLOTS);
  return (body) => {
    const text = systemPrompt(body);
    if (text === null) return 0;
    const slot = slotOf(text);
    if (texts[slot] === text) return hashes[slot] ?? 0;
    const hash = fnv32a(Buffer.from(text, 'utf8'));
    if (text.length <= MAX_REMEMBERED) {
      texts[slot] = text;
      hashes[slot] = hash;
    }
    return hash;
  };
}

function firstSystemText(messages: unknown): string | null {
  if (!Array.isArray(messages)) return null;
  for (const message of messages as unknown[]) {
    // The inputs of embeddings are long arrays of texts or numbers: stop at the first element.
    if (typeof message !== 'object' || message === null) return null;
    const { role, content } = message as { role?: unknown; content?: unknown };
    if (role === 'system' || role === 'developer') return contentText(content);
  }
  return null;
}

/** The text of a message: its content, or the texts of its content parts joined; null if it is neither. */
export function contentText(content: unknown): string | null {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return null;
  let joined = '';
  for (const part of content as unknown[]) {
    const text = typeof part === 'object' && part !== null ? (part as Members)['text'] : part;
    if (typeof text === 'string') joined += text;
  }
  return joined;
}

/** A cheap hash of the length and at most eight characters: it distinguishes most prompts. */
function slotOf(text: string): number {
  let mix = text.length;
  const step = (text.length >> 3) + 1;
  for (let at = 0; at < text.length; at += step)
    mix = Math.imul(mix ^ text.charCodeAt(at), 0x9e3779b1);
  return (mix >>> 16) % SLOTS;
}
