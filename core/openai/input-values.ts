const SHOWN_UNITS = 64;

/** The kind of a JSON value, for messages to users. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A value for messages to users: a string as JSON, cut after 64 characters; else the kind of the value. */
export function quoted(value: unknown): string {
  if (typeof value !== 'string') return kindOf(value);
  if (value.length <= SHOWN_UNITS) return JSON.stringify(value);
  return `${JSON.stringify(value.slice(0, SHOWN_UNITS))}…`;
}
