import { trimBlanks } from '../headers/header-text';

/** The key of `Bearer <key>`; null for any other value. */
export function bearerKey(authorization: string): string | null {
  const scheme = authorization.slice(0, 7);
  if (!/^bearer[ \t]$/i.test(scheme)) return null;
  const key = trimBlanks(authorization.slice(scheme.length));
  return key === '' ? null : key;
}
