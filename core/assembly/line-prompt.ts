/** What the plan needs of a line's prompt: its chain, and the hash of a short system prompt. */
import { QUOTE } from './json-strings';
import {
  endOf,
  firstByteOf,
  has,
  INPUT,
  INPUT_SYSTEM,
  INSTRUCTIONS,
  isPresent,
  MESSAGES,
  MESSAGES_SYSTEM,
  PROMPT,
  startOf,
  TOOLS,
} from './line-fields';
import { addLastRange, addRange } from './prefix-chain';
import { haveSameBytes } from './same-bytes';

/** No field. */
export const NONE: i32 = -1;

const BACKSLASH: u32 = 0x5c;
const FNV_OFFSET: u32 = 0x811c9dc5;
const FNV_PRIME: u32 = 0x01000193;

/** The latest text that was hashed, in quotes, and its hash. */
let hashedText: usize = 0;
let hashedLength: usize = 0;
let hash: u32 = 0;

/** Begins with other lines. */
export function forgetHash(): void {
  hashedLength = 0;
}

/** The field of the system prompt; {@link NONE} if the line has none. */
export function systemField(): i32 {
  if (has(MESSAGES_SYSTEM)) return MESSAGES_SYSTEM;
  if (firstByteOf(INSTRUCTIONS) === QUOTE) return INSTRUCTIONS;
  return has(INPUT_SYSTEM) ? INPUT_SYSTEM : NONE;
}

/** Whether {@link plainHash} is the hash of a field. */
export function isShortText(field: i32, most: usize): bool {
  const start = startOf(field) + 1;
  const end = endOf(field) - 1;
  if (firstByteOf(field) !== QUOTE || end - start > most) return false;
  if (isHashed(start - 1, end - start + 2)) return true;
  for (let at = start; at < end; at++) if (load<u8>(at) === BACKSLASH) return false;
  return true;
}

/** FNV-32a of a short string without escapes. */
export function plainHash(field: i32): u32 {
  const start = startOf(field);
  const length = endOf(field) - start;
  if (isHashed(start, length)) return hash;
  hash = FNV_OFFSET;
  for (let at = start + 1; at < start + length - 1; at++) hash = (hash ^ load<u8>(at)) * FNV_PRIME;
  hashedText = start;
  hashedLength = length;
  return hash;
}

/** Whether a text in quotes equals the latest one that was hashed. Neighbours often have the same system prompt. */
function isHashed(start: usize, length: usize): bool {
  return length === hashedLength && haveSameBytes(hashedText, start, length);
}

/**
 * Adds the bytes of the prompt to the chain, in the order in which models read them. If the last member in this order is
 * the last one in the line too, the rest of the line counts as part of it, as core/openai/prompt-bytes.ts has it.
 */
export function addPrompt(lineEnd: usize): void {
  const main = mainField();
  const tools = isPresent(TOOLS) ? TOOLS : NONE;
  const instructions = isPresent(INSTRUCTIONS) ? INSTRUCTIONS : NONE;
  const last = main !== NONE ? main : instructions !== NONE ? instructions : tools;
  if (last === NONE) return;
  const start = startOf(last);
  const isLast = !isBehind(tools, start) && !isBehind(instructions, start);
  if (tools !== NONE && tools !== last) addRange(startOf(tools), endOf(tools));
  if (instructions !== NONE && instructions !== last) {
    addRange(startOf(instructions), endOf(instructions));
  }
  addLastRange(start, isLast ? lineEnd : endOf(last));
}

function mainField(): i32 {
  if (isPresent(MESSAGES)) return MESSAGES;
  if (isPresent(INPUT)) return INPUT;
  return isPresent(PROMPT) ? PROMPT : NONE;
}

function isBehind(field: i32, start: usize): bool {
  return field !== NONE && startOf(field) > start;
}
