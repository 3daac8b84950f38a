/** Compares requests and answers with the OpenAPI document, as a client that only has the document. */
import { createRequire } from 'node:module';
import { openApiDocument } from '../../api/openapi/document';
import { formBoundary, formEntries, readEntry } from '../../http/multipart/form-entries';
import { configSchema } from '../../platform/config-schema';

/** A request and its answer, as a test has made them. */
export interface Exchange {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly contentType: string | undefined;
  readonly payload: unknown;
  readonly status: number;
  readonly body: unknown;
}

type Json = Readonly<Record<string, unknown>>;
type Check = ((value: unknown) => boolean) & { errors?: readonly unknown[] | null };

interface Operation {
  readonly path: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: Json;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Json }>> };
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: Json }>> }>
  >;
}

/** Ajv comes with the validator of OpenAPI documents. */
const validator = createRequire(
  require.resolve('@seriousme/openapi-schema-validator/package.json'),
);
const { default: Ajv } = validator('ajv/dist/2020') as {
  default: new (options: object) => {
    addSchema(schema: object, name: string): void;
    compile(schema: object): Check;
  };
};

const { auth, batch } = configSchema.parse({});
const DOCUMENT = openApiDocument({ auth, endpoints: batch.endpoints }) as {
  paths: Record<string, Record<string, Omit<Operation, 'path'>>>;
  components: Json;
};
const CHECKS = new Map<Json, Check>();
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(DOCUMENT, 'api');

/**
 * Faults that the document cannot express: they depend on other objects, on bytes, on the bounds of a
 * duration, on how often a field occurs, or on whether it is sent as a file.
 */
const BEYOND_SCHEMA = [
  /'input_file_id': expected a file whose purpose/,
  /'after': expected the id of an object/,
  /'part_ids': expected ids of parts/,
  /'data' is|bytes that the upload declared/,
  // A text field beside the file of the same name.
  /^Unknown parameter: '(data|file)'/,
  /'completion_window': expected '24h', or another duration/,
  /'mime_type': expected a string of at most 255 bytes/,
  /expected (a single value|a file|a text, not a file)\.$/,
  /Idempotency-Key/,
  /^This batch was passed on \d+ times/,
];

/**
 * Where an exchange differs from the document; empty if it does not, or is not in it. A request that was
 * accepted must be valid by the document, and one that was refused for a field must not be.
 */
export async function undocumented(exchange: Exchange): Promise<string[]> {
  const operation = operationOf(exchange);
  const { status, body, method, url } = exchange;
  if (operation === null || method === 'HEAD') return [];
  const response = operation.responses[String(status)];
  const what = `${method} ${url} ${status}`;
  if (response === undefined) return [`${what} is not documented`];
  const schema = response.content['application/json']?.schema;
  const answer = schema === undefined ? [] : faults(what, schema, body);
  if (status < 400) return [...answer, ...(await requestFaults(operation, exchange))];
  if (status !== 400 || !isAboutField(body)) return answer;
  const refused = (await requestFaults(operation, exchange)).length > 0;
  return refused ? answer : [...answer, `${what} ${JSON.stringify(body)}: the document allows it`];
}

/** Where a request is not as the document asks for. */
async function requestFaults(operation: Operation, exchange: Exchange): Promise<string[]> {
  const { pathname, searchParams } = new URL(exchange.url, 'http://localhost');
  const inPath = new RegExp(`^${operation.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}/?$`);
  const given = { path: inPath.exec(pathname)?.groups ?? {}, query: grouped(searchParams) };
  const ofParameters = operation.parameters
    .filter((one) => one.in === 'path' || one.in === 'query')
    .flatMap(({ name, in: place, schema }) => {
      const value = given[place as 'path' | 'query'][name];
      if (value === undefined) return [];
      return faults(`${place} parameter ${name}`, schema, meaning(value, schema));
    });
  return [...ofParameters, ...(await bodyFaults(operation, exchange))];
}

async function bodyFaults({ requestBody }: Operation, exchange: Exchange): Promise<string[]> {
  if (requestBody === undefined) return [];
  const { 'application/json': json, 'multipart/form-data': form } = requestBody.content;
  const what = `request ${exchange.method} ${exchange.url}`;
  const { payload, contentType } = exchange;
  const bytes = Buffer.isBuffer(payload)
    ? payload
    : Buffer.from(typeof payload === 'string' ? payload : '');
  if (json !== undefined) {
    const value = JSON.parse(bytes.length === 0 ? '{}' : bytes.toString()) as unknown;
    return faults(what, json.schema, value);
  }
  if (form === undefined) return [];
  const { properties = {} } = resolved(form.schema) as { properties?: Record<string, Json> };
  const texts = await formTexts(bytes, formBoundary(contentType) ?? '').catch(() => null);
  if (texts === null) return [`${what}: not a form`];
  const values = texts.map(([name, text]) => [name, meaning(text, properties[name] ?? {})]);
  return faults(what, form.schema, Object.fromEntries(values));
}

async function formTexts(bytes: Buffer, boundary: string): Promise<[string, string][]> {
  async function* source() {
    yield bytes;
  }
  const entries: [string, string][] = [];
  for await (const entry of formEntries(source(), boundary)) {
    entries.push([entry.name, (await readEntry(entry, Infinity)).toString('latin1')]);
  }
  return entries;
}

/** The value that a text of a query or a form stands for. */
function meaning(text: string | string[], { type }: Json): unknown {
  const isInteger = typeof text === 'string' && /^[+-]?\d+$/.test(text);
  return type === 'integer' && isInteger ? Number(text) : text;
}

function resolved(schema: Json): Json {
  const id = String(schema['$ref']).split('/').at(-1) ?? '';
  return (DOCUMENT.components['schemas'] as Record<string, Json>)[id] ?? schema;
}

function grouped(query: URLSearchParams): Record<string, string | string[]> {
  return Object.fromEntries(
    [...new Set(query.keys())].map((name) => {
      const values = query.getAll(name);
      return [name, values.length === 1 ? (values[0] ?? '') : values];
    }),
  );
}

function isAboutField(body: unknown): boolean {
  const { error } = body as { error: { message: string; param: string | null; code: unknown } };
  const isFault = error.param !== null && error.code !== null;
  return isFault && !BEYOND_SCHEMA.some((text) => text.test(error.message));
}

function faults(what: string, schema: Json, value: unknown): string[] {
  const reference = schema['$ref'];
  const check =
    CHECKS.get(schema) ??
    ajv.compile(typeof reference === 'string' ? { $ref: `api${reference}` } : schema);
  CHECKS.set(schema, check);
  return check(value) ? [] : [`${what}: ${JSON.stringify(check.errors)}`];
}

function operationOf({ method, url }: Exchange): Operation | null {
  const path = url.split('?', 1)[0]?.replace(/\/+$/, '') ?? '';
  for (const [pattern, methods] of Object.entries(DOCUMENT.paths)) {
    const operation = methods[method.toLowerCase()];
    const isOurs = new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`).test(path);
    if (isOurs && operation !== undefined) return { ...operation, path: pattern };
  }
  return null;
}
