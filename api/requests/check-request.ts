import { z } from 'zod';
import type { NightshiftError } from '../../core/errors';
import {
  fault,
  type FaultCode,
  missing,
  outOfBounds,
  unknownParameter,
  wrongType,
  wrongValue,
} from './faults';

type Issue = z.core.$ZodIssue;

/**
 * Checks a request against the schema of the OpenAPI document, and returns the parsed request. The
 * message of every issue must complete "expected …"; see the builders in `fields.ts`.
 *
 * @throws invalid_request with the first fault in the order of the schema's fields; unknown fields come
 *   last (docs/design/api-contract.md#request-error-codes)
 */
export function checkRequest<S extends z.ZodObject>(schema: S, request: unknown): z.output<S> {
  const result = schema.safeParse(request, { reportInput: true });
  if (result.success) return result.data;
  const names = Object.keys(schema.shape);
  const rank = ({ path: [name] }: Issue): number =>
    name === undefined ? names.length : names.indexOf(String(name));
  const [first] = result.error.issues.toSorted((a, b) => rank(a) - rank(b));
  throw first === undefined ? result.error : faultOf(first, schema);
}

function faultOf(issue: Issue, schema: z.ZodObject): NightshiftError {
  const param = paramOf(issue.path);
  const code = codeOf(issue, schema);
  switch (code) {
    case 'missing_required_parameter':
      return missing(param);
    case 'unknown_parameter':
      return unknownParameter(paramOf([...issue.path, unknownKey(issue)]));
    case 'invalid_type':
      return wrongType(param, issue.message);
    case 'invalid_value':
      return wrongValue(param, issue.message);
    case 'property_name_above_max_length': {
      const parent = paramOf(issue.path.slice(0, -1));
      const expected = issue.code === 'invalid_key' ? issue.issues[0]?.message : issue.message;
      return fault(code, parent, `Invalid property name in '${parent}': expected ${expected}.`);
    }
    default:
      return outOfBounds(code, param, issue.message);
  }
}

function codeOf(issue: Issue, schema: z.ZodObject): FaultCode {
  const isAbsent = issue.input === undefined || issue.input === null;
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'unknown_parameter';
    case 'invalid_key':
      return 'property_name_above_max_length';
    case 'too_small':
      return issue.origin === 'string' ? 'invalid_value' : 'integer_below_min_value';
    case 'too_big':
      return issue.origin === 'string' ? 'invalid_value' : 'integer_above_max_value';
    case 'custom':
      return issue.params === undefined && isAbsent
        ? 'missing_required_parameter'
        : ((issue.params?.['code'] as FaultCode | undefined) ?? 'invalid_type');
    case 'invalid_type':
      // A field that is null is absent. A null in an array or a map is a value of the wrong type.
      return isAbsent && isField(schema, issue.path)
        ? 'missing_required_parameter'
        : 'invalid_type';
    case 'invalid_value':
      if (isAbsent) return 'missing_required_parameter';
      return typeof issue.input === 'string' ? 'invalid_value' : 'invalid_type';
    default:
      return 'invalid_value';
  }
}

/** Names of fields joined by dots. A fault in an element is reported for its array. */
function paramOf(path: readonly PropertyKey[]): string {
  return path.filter((key) => typeof key === 'string').join('.');
}

function unknownKey(issue: Issue): string {
  return issue.code === 'unrecognized_keys' ? (issue.keys[0] ?? '') : '';
}

/** Whether every step of the path is a field of the schema. */
function isField(schema: z.ZodObject, path: readonly PropertyKey[]): boolean {
  let at: unknown = schema;
  for (const key of path) {
    while (at instanceof z.ZodOptional || at instanceof z.ZodNullable) at = at.unwrap();
    if (!(at instanceof z.ZodObject)) return false;
    at = at.shape[String(key)];
  }
  return true;
}
