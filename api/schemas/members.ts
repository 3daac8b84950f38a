import {
  EXPIRES_AFTER_SEC,
  missing,
  unknownParameter,
  withinBounds,
  wrongType,
  wrongValue,
} from './faults';
import { isJsonObject } from '../../core/openai/json-object';

/** A parsed JSON body. */
export type Body = Readonly<Record<string, unknown>>;

/** A member of a body: own members only, and null is absent (contract §7.1). */
export function present(body: Body, name: string): unknown {
  return Object.hasOwn(body, name) ? (body[name] ?? undefined) : undefined;
}

/** A member that must be a text with something in it. @throws invalid_request */
export function requiredText(body: Body, name: string): string {
  const value = present(body, name);
  if (value === undefined) throw missing(name);
  if (typeof value !== 'string') throw wrongType(name, 'a string');
  if (value === '') throw wrongValue(name, 'a non-empty string');
  return value;
}

/** Refuses members that the endpoint does not have. @throws invalid_request */
export function onlyKnown(body: Body, known: ReadonlySet<string>): void {
  const unknown = Object.keys(body).find((name) => !known.has(name));
  if (unknown !== undefined) throw unknownParameter(unknown);
}

/** Seconds of `{anchor: 'created_at', seconds}`; null where it is absent. @throws invalid_request */
export function parseExpiresAfter(body: Body, param: string): number | null {
  const value = present(body, param);
  if (value === undefined) return null;
  if (!isJsonObject(value)) throw wrongType(param, 'an object');
  const anchor = present(value, 'anchor');
  if (anchor === undefined) throw missing(`${param}.anchor`);
  if (typeof anchor !== 'string') throw wrongType(`${param}.anchor`, 'a string');
  if (anchor !== 'created_at') throw wrongValue(`${param}.anchor`, "'created_at'");
  const seconds = present(value, 'seconds');
  if (seconds === undefined) throw missing(`${param}.seconds`);
  if (!Number.isInteger(seconds)) throw wrongType(`${param}.seconds`, 'an integer');
  const checked = withinBounds(Number(seconds), `${param}.seconds`, EXPIRES_AFTER_SEC);
  const unknown = Object.keys(value).find((name) => name !== 'anchor' && name !== 'seconds');
  if (unknown !== undefined) throw unknownParameter(`${param}.${unknown}`);
  return checked;
}
