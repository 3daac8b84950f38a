import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { version } from '../../platform/version';
import { errorShape } from '../objects/error-object';
import { idempotencyKeyHeader } from '../routes/idempotency';
import { HEADERS, headersOf } from './headers';
import { COMMON_ERRORS, type Operation, operations } from './operations';
import { type Authentication, securityOf, securityScheme } from '../../http/openapi/security';

type Json = Readonly<Record<string, unknown>>;

/** What differs between installations. */
export interface DocumentOptions {
  readonly auth: Authentication;
  /** Endpoints that batches may be created for. */
  readonly endpoints: readonly string[];
}

/**
 * The API of this installation as an OpenAPI 3.1 document, made from the schemas that check requests and
 * type answers (docs/design/api-contract.md#openapi-document).
 */
export function openApiDocument({ auth, endpoints }: DocumentOptions): Json {
  const used = new Map<string, Json>();
  const paths: Record<string, Record<string, Json>> = {};
  const scheme = securityScheme(auth);
  for (const operation of operations(endpoints)) {
    const path = (paths[operation.path] ??= {});
    path[operation.method] = describe(operation, used);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Nightshift',
      version: version(),
      description: "OpenAI's Files, Uploads and Batches API.",
    },
    paths,
    components: {
      schemas: Object.fromEntries([...used].sort(([a], [b]) => (a < b ? -1 : 1))),
      headers: HEADERS,
      ...(scheme === null ? {} : { securitySchemes: { caller: scheme } }),
    },
    security: securityOf(auth),
  };
}

function describe(operation: Operation, used: Map<string, Json>): Json {
  const { id, summary, answer } = operation;
  const type = answer === null ? 'application/octet-stream' : 'application/json';
  const schema = answer === null ? {} : referenceTo(answer, used);
  const content = { [type]: { schema } };
  const success = (status: number, description: string): Json => {
    return { [status]: { description, headers: headersOf(status), content } };
  };
  return {
    operationId: id,
    summary,
    parameters: parametersOf(operation),
    ...bodyOf(operation, used),
    responses: {
      ...success(200, 'Success'),
      ...(answer === null ? success(206, 'The range') : {}),
      ...errorsOf(operation, used),
    },
  };
}

function bodyOf({ json, form }: Operation, used: Map<string, Json>): Json {
  const shape = json ?? form;
  if (shape === undefined) return {};
  const type = json === undefined ? 'multipart/form-data' : 'application/json';
  const schema = referenceTo(shape, used);
  return { requestBody: { required: true, content: { [type]: { schema } } } };
}

function errorsOf({ errors }: Operation, used: Map<string, Json>): Json {
  const content = { 'application/json': { schema: referenceTo(errorShape, used) } };
  return Object.fromEntries(
    [...errors, ...COMMON_ERRORS].map((status) => [
      status,
      { description: STATUS_CODES[status] ?? 'Error', headers: headersOf(status), content },
    ]),
  );
}

function parametersOf({ parameters, query, acceptsIdempotencyKey, answer }: Operation): Json[] {
  const key = { name: 'Idempotency-Key', in: 'header', schema: toJsonSchema(idempotencyKeyHeader) };
  const range = { name: 'Range', in: 'header', schema: RANGE };
  return [
    ...parametersIn('path', parameters),
    ...parametersIn('query', query),
    ...(acceptsIdempotencyKey === true ? [key] : []),
    ...(answer === null ? [range] : []),
  ];
}

function parametersIn(place: 'path' | 'query', schema: z.ZodObject | undefined): Json[] {
  return Object.entries(schema?.shape ?? {}).map(([name, shape]) => {
    return {
      name,
      in: place,
      required: place === 'path',
      schema: toJsonSchema(shape as z.ZodType),
    };
  });
}

const RANGE = { type: 'string', examples: ['bytes=0-1023'] };

/**
 * Adds a named schema and the named schemas inside it to `used`, and returns a reference to it. A schema
 * without a name is returned as it is.
 */
function referenceTo(shape: z.ZodType, used: Map<string, Json>): Json {
  const { $defs, ...schema } = toJsonSchema(shape);
  for (const [id, named] of Object.entries(($defs ?? {}) as Record<string, Json>)) {
    used.set(id, withoutId(named));
  }
  const { id } = schema;
  if (typeof id !== 'string') return schema;
  used.set(id, withoutId(schema));
  return { $ref: componentOf(id) };
}

/**
 * Converts a schema to JSON Schema. Parameters of queries and forms arrive as text. The `output` side of
 * their schemas describes the value that the text stands for, such as an integer, and its default. The
 * type of a file has no JSON Schema, so the schema's metadata describes it.
 */
function toJsonSchema(shape: z.ZodType): Json {
  const schema = z.toJSONSchema(shape, { io: 'output', unrepresentable: 'any' });
  return without('$schema', withComponentRefs(schema) as Json);
}

/** Removes the id, which is the key of the component. */
function withoutId(schema: Json): Json {
  return without('id', schema);
}

function without(name: string, json: Json): Json {
  return Object.fromEntries(Object.entries(json).filter(([key]) => key !== name));
}

function componentOf(id: string): string {
  return `#/components/schemas/${id}`;
}

/** A JSON Schema whose references lead to the components of the document. */
function withComponentRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withComponentRefs);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string'
        ? [key, member.replace('#/$defs/', componentOf(''))]
        : [key, withComponentRefs(member)],
    ),
  );
}
