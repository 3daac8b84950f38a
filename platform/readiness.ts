/** A dependency that must answer before work may come; rejects with what is wrong. */
export type ReadinessCheck = () => Promise<void>;

/** `ok`, or one line that says what is wrong; waits at most `timeoutMs` for the check. */
export async function tryCheck(check: ReadinessCheck, timeoutMs: number): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no answer within ${timeoutMs} ms`), timeoutMs);
  });
  try {
    return await Promise.race([check().then(() => 'ok', inWords), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** One line for people. */
export function inWords(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
