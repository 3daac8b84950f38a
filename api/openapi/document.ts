import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { version } from '../../platform/version';
import { errorShape } from '../objects/error-object';
import { idempotencyKeyHeader } from '../routes/idempotency';
import { HEADERS, headersOf } from './headers';
import { COMMON_ERRORS, type Operation, operations } from './operations';
import { type Authentication, securityOf, securityScheme } from './security';

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
  const schema = answer === null ? {} : refer(answer, used);
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
  const schema = refer(shape, used);
  return { requestBody: { required: true, content: { [type]: { schema } } } };
}

function errorsOf({ errors }: Operation, used: Map<string, Json>): Json {
  const content = { 'application/json': { schema: refer(errorShape, used) } };
  return Object.fromEntries(
    [...errors, ...COMMON_ERRORS].map((status) => [
      status,
      { description: STATUS_CODES[status] ?? 'Error', headers: headersOf(status), content },
    ]),
  );
}

function parametersOf({ parameters, query, isRepeatable, answer }: Operation): Json[] {
  const key = { name: 'Idempotency-Key', in: 'header', schema: plain(idempotencyKeyHeader) };
  const range = { name: 'Range', in: 'header', schema: RANGE };
  return [
    ...parametersIn('path', parameters),
    ...parametersIn('query', query),
    ...(isRepeatable === true ? [key] : []),
    ...(answer === null ? [range] : []),
  ];
}

function parametersIn(place: 'path' | 'query', schema: z.ZodObject | undefined): Json[] {
  return Object.entries(schema?.shape ?? {}).map(([name, shape]) => {
    return { name, in: place, required: place === 'path', schema: plain(shape as z.ZodType) };
  });
}

const RANGE = { type: 'string', examples: ['bytes=0-1023'] };

/** A reference to a schema, which becomes a component together with the named ones inside it. */
function refer(shape: z.ZodType, used: Map<string, Json>): Json {
  const { $defs, ...schema } = plain(shape);
  for (const [id, named] of Object.entries(($defs ?? {}) as Record<string, Json>)) {
    used.set(id, bare(named));
  }
  const { id } = schema;
  if (typeof id !== 'string') return schema;
  used.set(id, bare(schema));
  return { $ref: componentOf(id) };
}

/**
 * A schema as JSON Schema. The `output` side of one that converts the texts of a query or a form is what
 * a client means: an integer, and the default. A file's bytes are described by their metadata.
 */
function plain(shape: z.ZodType): Json {
  const schema = z.toJSONSchema(shape, { io: 'output', unrepresentable: 'any' });
  return without('$schema', rewritten(schema) as Json);
}

/** The id is the component's key already. */
function bare(schema: Json): Json {
  return without('id', schema);
}

function without(name: string, json: Json): Json {
  return Object.fromEntries(Object.entries(json).filter(([key]) => key !== name));
}

function componentOf(id: string): string {
  return `#/components/schemas/${id}`;
}

/** A JSON Schema whose references lead to the components of the document. */
function rewritten(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rewritten);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string'
        ? [key, member.replace('#/$defs/', componentOf(''))]
        : [key, rewritten(member)],
    ),
  );
}
