/** What the output of `npm audit --json` means, and how to say it. */
export function judge(output: string): { kind: 'ok' | 'vulnerable' | 'unchecked'; text: string };
