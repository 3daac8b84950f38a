/** Checks one dependency; rejects with an error if it fails. */
export type ReadinessCheck = () => Promise<void>;

/** `ok`, or the message of the error. Waits at most `timeoutMs`. */
export async function tryCheck(check: ReadinessCheck, timeoutMs: number): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no answer within ${timeoutMs} ms`), timeoutMs);
  });
  try {
    return await Promise.race([check().then(() => 'ok', messageOf), late]);
  } finally {
    clearTimeout(timer);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
