/** Whether two short texts have the same bytes. */
export function haveSameBytes(a: usize, b: usize, length: usize): bool {
  let at: usize = 0;
  for (; at + 8 <= length; at += 8) {
    if (load<u64>(a + at) !== load<u64>(b + at)) return false;
  }
  return firstBytes(a + at, length - at) === firstBytes(b + at, length - at);
}

/** The first `count` bytes at an address as a number; at most eight. It reads eight. */
export function firstBytes(from: usize, count: usize): u64 {
  if (count >= 8) return load<u64>(from);
  return load<u64>(from) & (((1 as u64) << (count * 8)) - 1);
}
