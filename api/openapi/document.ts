import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { version } from '../../platform/version';
import { COMMON_ERRORS, type Operation, OPERATIONS } from './operations';
import { errorShape } from './shapes';

type Json = Readonly<Record<string, unknown>>;

/** The API as an OpenAPI 3.1 document. */
export function openApiDocument(): Json {
  const used = new Map<string, Json>();
  const paths: Record<string, Record<string, Json>> = {};
  for (const operation of OPERATIONS) {
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
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
    },
    security: [{ key: [] }, {}],
  };
}

function describe(operation: Operation, used: Map<string, Json>): Json {
  const { id, summary, answer } = operation;
  const type = answer === null ? 'application/octet-stream' : 'application/json';
  const schema = answer === null ? {} : refer(answer, used);
  const success = { description: 'Success', content: { [type]: { schema } } };
  return {
    operationId: id,
    summary,
    parameters: parametersOf(operation),
    ...bodyOf(operation, used),
    responses: {
      200: success,
      ...(answer === null ? { 206: { ...success, description: 'The range' } } : {}),
      ...errorsOf(operation, used),
    },
  };
}

function bodyOf({ json, form }: Operation, used: Map<string, Json>): Json {
  const shape = json ?? form;
  if (shape === undefined) return {};
  const type = json === undefined ? 'multipart/form-data' : 'application/json';
  const schema = refer(shape, used, 'input');
  return { requestBody: { required: true, content: { [type]: { schema } } } };
}

function errorsOf({ errors }: Operation, used: Map<string, Json>): Json {
  const content = { 'application/json': { schema: refer(errorShape, used) } };
  return Object.fromEntries(
    [...errors, ...COMMON_ERRORS].map((status) => [
      status,
      { description: STATUS_CODES[status] ?? 'Error', content },
    ]),
  );
}

function parametersOf({ path, query, isRepeatable }: Operation): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } };
  });
  const inQuery = Object.entries(query?.shape ?? {}).map(([name, shape]) => {
    return { name, in: 'query', required: false, schema: plain(shape as z.ZodType, 'input') };
  });
  const schema = { type: 'string', minLength: 1, maxLength: 255 };
  const inHeader = isRepeatable === true ? [{ name: 'Idempotency-Key', in: 'header', schema }] : [];
  return [...inPath, ...inQuery, ...inHeader];
}

/** A reference to a shape, which is put among the components together with those it is made of. */
function refer(shape: z.ZodType, used: Map<string, Json>, io: 'input' | 'output' = 'output'): Json {
  const { $defs, ...schema } = plain(shape, io);
  for (const [id, part] of Object.entries(($defs ?? {}) as Record<string, Json>)) {
    used.set(id, bare(part));
  }
  const { id } = schema;
  if (typeof id !== 'string') return schema;
  used.set(id, bare(schema));
  return { $ref: componentOf(id) };
}

function plain(shape: z.ZodType, io: 'input' | 'output'): Json {
  return without('$schema', rewritten(z.toJSONSchema(shape, { io })) as Json);
}

/** The name is the component's key. */
function bare(schema: Json): Json {
  return without('id', schema);
}

function without(name: string, json: Json): Json {
  return Object.fromEntries(Object.entries(json).filter(([key]) => key !== name));
}

function componentOf(id: string): string {
  return `#/components/schemas/${id}`;
}

/** References of JSON Schema as those of an OpenAPI document. */
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
