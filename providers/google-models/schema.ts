import { isJsonObject } from '../../core/openai/json-object';
import type { TranslationScope } from '../chat/scope';
import type { Json } from '../chat/values';

/** Keywords that Google's `Schema` has with the meaning of JSON Schema. */
const KEPT: ReadonlySet<string> = new Set([
  ...['title', 'description', 'default', 'format', 'pattern', 'required'],
  ...['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems'],
  ...['minProperties', 'maxProperties'],
]);
/** Keywords that say nothing about valid values. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', 'examples']);
const TYPES: ReadonlySet<unknown> = new Set([
  ...['string', 'number', 'integer', 'boolean', 'array', 'object'],
]);
/** Deeper schemas are refused, so that no line can exhaust the stack. */
const MAX_DEPTH = 64;

/**
 * Translates a JSON schema into Google's `Schema`, a part of OpenAPI 3.0
 * (https://ai.google.dev/api/caching#Schema). A keyword that it lacks is refused, or dropped, as `scope` says.
 */
export function schemaOf(schema: Json, path: string, scope: TranslationScope): Json {
  return new SchemaTranslator(scope).translate(schema, path, 0);
}

class SchemaTranslator {
  readonly #scope: TranslationScope;

  constructor(scope: TranslationScope) {
    this.#scope = scope;
  }

  translate(schema: unknown, path: string, depth: number): Json {
    if (!isJsonObject(schema)) return this.#scope.refuse(path, 'expected a schema object');
    if (depth > MAX_DEPTH) return this.#scope.refuse(path, `deeper than ${MAX_DEPTH} levels`);
    const members = Object.entries(schema).map(([name, value]) =>
      this.#keyword(name, value, { path: `${path}.${name}`, depth }),
    );
    return Object.assign({}, ...members) as Json;
  }

  #keyword(
    name: string,
    value: unknown,
    at: { readonly path: string; readonly depth: number },
  ): Json {
    const { path, depth } = at;
    if (KEPT.has(name)) return { [name]: value };
    if (ANNOTATIONS.has(name)) return {};
    switch (name) {
      case 'type':
        return this.#type(value, path);
      case 'enum':
        return this.#enum(value, path);
      case 'const':
        return this.#enum([value], path);
      case 'items':
        return { items: this.translate(value, path, depth + 1) };
      case 'properties':
        return this.#properties(value, path, depth);
      case 'anyOf':
        return this.#anyOf(value, path, depth);
      case 'additionalProperties':
        // Google's models write the properties of the schema only, as `false` demands.
        if (value === false) return {};
    }
    this.#scope.drop(path, 'the provider has no such keyword');
    return {};
  }

  #type(value: unknown, path: string): Json {
    const given: readonly unknown[] = Array.isArray(value) ? value : [value];
    const types = given.filter((one) => one !== 'null');
    const [type] = types;
    if (types.length !== 1 || !TYPES.has(type)) {
      return this.#scope.refuse(path, 'expected one type, or one type and null');
    }
    return { type: String(type).toUpperCase(), ...(given.length > 1 ? { nullable: true } : {}) };
  }

  #enum(value: unknown, path: string): Json {
    const values: readonly unknown[] = Array.isArray(value) ? value : [];
    const texts = values.filter((one) => one !== null);
    if (texts.length === 0 || !texts.every((one) => typeof one === 'string')) {
      this.#scope.drop(path, 'the provider takes texts only');
      return {};
    }
    return { enum: texts, ...(texts.length < values.length ? { nullable: true } : {}) };
  }

  /** OpenAI writes the properties in the order of the schema; Google sorts them, unless it is told their order. */
  #properties(value: unknown, path: string, depth: number): Json {
    if (!isJsonObject(value)) return this.#scope.refuse(path, 'expected an object');
    const names = Object.keys(value);
    if (names.length === 0) return {};
    const properties = names.map((name) => [
      name,
      this.translate(value[name], `${path}.${name}`, depth + 1),
    ]);
    return { properties: Object.fromEntries(properties) as Json, propertyOrdering: names };
  }

  #anyOf(value: unknown, path: string, depth: number): Json {
    if (!Array.isArray(value)) return this.#scope.refuse(path, 'expected an array');
    const choices = (value as readonly unknown[]).filter((one) => !isNullSchema(one));
    const anyOf = choices.map((one, i) => this.translate(one, `${path}[${i}]`, depth + 1));
    return { anyOf, ...(choices.length < value.length ? { nullable: true } : {}) };
  }
}

function isNullSchema(schema: unknown): boolean {
  return isJsonObject(schema) && schema['type'] === 'null';
}
