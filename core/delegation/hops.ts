/** The member of a batch's metadata in which one Nightshift tells the next how often the batch was passed on. */
export const HOPS_KEY = 'nightshift_hops';

/** How often a batch may be passed on. Installations that delegate to each other would do so for ever. */
export const MAX_HOPS = 3;

/** How often the batch was passed on before it came here; 0 for a batch of a user, or if the value is no count. */
export function hopsOf(metadata: Readonly<Record<string, string>> | null): number {
  const hops = Number(metadata?.[HOPS_KEY] ?? 0);
  return Number.isSafeInteger(hops) && hops > 0 ? hops : 0;
}
