/** A file that is read as a whole. */
export interface WholeFile {
  /** Takes the next bytes. What exceeds the limit is not kept. */
  take(piece: Buffer): Promise<void>;
  /** Its JSON value; undefined if it is too long or not JSON. */
  json(): unknown;
}

/** Collects a file of a provider in memory. */
export function wholeFile(maxBytes: number): WholeFile {
  const pieces: Buffer[] = [];
  let bytes = 0;
  return {
    take: async (piece) => {
      bytes += piece.length;
      if (bytes <= maxBytes) pieces.push(piece);
    },
    json: () => (bytes > maxBytes ? undefined : parsed(Buffer.concat(pieces).toString('utf8'))),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
