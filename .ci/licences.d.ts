/** Names of production packages by licence. Throws if a licence is not accepted. */
export function licences(lock?: {
  packages: Record<string, { license?: string; dev?: boolean }>;
}): Map<string, Set<string>>;

/** The text of docs/licences.md. */
export function page(): string;
