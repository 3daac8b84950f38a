import type { z } from 'zod';
import { NightshiftError } from '../core/errors';
import { keysAt, nearestKey, pathsEndingIn } from './config-keys';
import { checkRules, type ConfigNeed } from './config-rules';
import { fillInPassword } from './config-postgres';
import { configSchema, type Config } from './config-schema';
import {
  getIn,
  mergeValues,
  readEnvironmentLayer,
  readFileLayer,
  type ConfigLayer,
  type Environment,
} from './config-sources';

export type { Config, GatewayConfig } from './config-schema';
export type { ConfigNeed } from './config-rules';
export type { Environment } from './config-sources';
export { redactUrl } from './config-redact';

/** The sources of settings; {@link loadConfig} defines their precedence. */
export interface ConfigSources {
  /** YAML or JSON file (docs/configuration.md). */
  readonly file?: string;
  /** Defaults to the process's own environment. */
  readonly env?: Environment;
  /** Command-line flags, nested as in the file; they override everything. */
  readonly overrides?: Readonly<Record<string, unknown>>;
  /** Settings that all other sources override: those that `dev` sets for its embedded components. */
  readonly fallbacks?: Readonly<Record<string, unknown>>;
}

export interface LoadOptions extends ConfigSources {
  /** Settings that must be present; by default a gateway. */
  readonly needs?: readonly ConfigNeed[];
}

/**
 * Reads and checks the whole configuration. Precedence, lowest first: the schema's defaults, fallbacks,
 * file, environment, overrides (docs/design/configuration.md#sources). Durations are milliseconds, sizes
 * bytes.
 *
 * @throws config_invalid with all problems, one per line, each with the place where it was written
 */
export function loadConfig(options: LoadOptions = {}): Config {
  const { layers, values, problems } = readSources(options);
  if (problems.length > 0) throw invalid(problems);
  const parsed = configSchema.safeParse(values);
  const found: string[] = [];
  if (parsed.success) {
    const breaks = [
      ...checkRules(parsed.data, options.needs ?? ['gateway']),
      ...fillInPassword(parsed.data.postgres),
    ];
    for (const { path, message } of breaks) found.push(locate(layers, path, message));
  } else {
    for (const issue of parsed.error.issues) found.push(...describeIssue(issue, layers, values));
  }
  if (parsed.success && found.length === 0) return parsed.data;
  throw invalid(found);
}

/**
 * The `paths` (dotted) that any source sets. The caller embeds the components of the stack whose address is
 * not set. Checks nothing.
 */
export function findSettings(sources: ConfigSources, paths: readonly string[]): Set<string> {
  const { values } = readSources(sources);
  const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
  return new Set(paths.filter((path) => isSet(getIn(values, path.split('.')))));
}

/**
 * All settings merged, as they were written (durations are still text), for the config file of a child
 * process. @throws config_invalid if the file cannot be read
 */
export function mergeSettings(sources: ConfigSources): Record<string, unknown> {
  const { values, problems } = readSources(sources);
  if (problems.length > 0) throw invalid(problems);
  return values;
}

/** The environment of this process. Nothing else reads `process.env`. */
export function processEnvironment(): Environment {
  return process.env;
}

/** Sets a variable that a library takes a setting from, unless the operator has set it. */
export function presetEnvironment(name: string, value: string): void {
  process.env[name] ??= value;
}

/** `env` without the variables that {@link loadConfig} reads, for children that get a merged file. */
export function withoutSettings(env: Environment): Record<string, string> {
  const kept = Object.entries(env).filter(([name]) => !SETTING_NAMES.test(name));
  return Object.fromEntries(
    kept.filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

const SETTING_NAMES = /^(NIGHTSHIFT__.*|TEMPORAL_.*|DATABASE_URL|PG[A-Z]+)$/;

interface Sources {
  /** Highest precedence first: the value of a path comes from the first layer that has it. */
  readonly layers: readonly ConfigLayer[];
  readonly values: Record<string, unknown>;
  readonly problems: readonly string[];
}

function readSources(sources: ConfigSources): Sources {
  const { file, env = process.env, overrides = {}, fallbacks = {} } = sources;
  const fileLayer = file === undefined ? null : readFileLayer(file);
  const layers: ConfigLayer[] = [
    { values: overrides, origin: () => 'command line' },
    readEnvironmentLayer(env),
    ...(fileLayer === null ? [] : [fileLayer]),
    { values: fallbacks, origin: () => 'built in' },
  ];
  const values = layers.reduceRight<Record<string, unknown>>(
    (below, layer) => mergeValues(below, layer.values),
    {},
  );
  return { layers, values, problems: fileLayer?.problems ?? [] };
}

function describeIssue(
  issue: z.core.$ZodIssue,
  layers: readonly ConfigLayer[],
  values: unknown,
): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) =>
      locate(layers, [...issue.path, key], unknownKey(issue.path, key)),
    );
  }
  if (issue.code === 'invalid_union') {
    const nested = issue.errors.find((branch) => branch.some((inner) => inner.path.length > 0));
    if (nested !== undefined) {
      return nested.flatMap((inner) =>
        describeIssue({ ...inner, path: [...issue.path, ...inner.path] }, layers, values),
      );
    }
  }
  const value = getIn(values, issue.path);
  return [locate(layers, issue.path, `${wording(issue, value)}${got(issue.path, value)}`)];
}

function wording(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code === 'custom') return issue.message;
  if (value === undefined) return 'required';
  if (issue.code === 'invalid_type') return `expected ${issue.expected}`;
  if (issue.code === 'invalid_value')
    return `expected one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_format' && issue.format === 'url')
    return 'expected an http:// or https:// URL';
  return issue.message.replace(/^Invalid input: /, '');
}

/** A URL with a user or a query, both of which may contain a key. */
const URL_WITH_SECRET = /:\/\/[^/]*@|:\/\/.*\?/;

/** The value as it was written, so that the operator can search for it; never a secret. */
function got(path: readonly PropertyKey[], value: unknown): string {
  if (value === undefined) return '';
  const text = JSON.stringify(value);
  const isSecret = /key|url|password/.test(String(path.at(-1))) || URL_WITH_SECRET.test(text);
  if (isSecret) return ', got another value (not shown)';
  return `, got ${text.length > 60 ? `${text.slice(0, 57)}...` : text}`;
}

function unknownKey(path: readonly PropertyKey[], key: string): string {
  const known = keysAt(configSchema, path);
  const near = nearestKey(key, known) ?? pathsEndingIn(configSchema, key)[0];
  const hint = near === undefined ? `known here: ${known.join(', ')}` : `did you mean ${near}?`;
  return `unknown key, ${hint}`;
}

function locate(
  layers: readonly ConfigLayer[],
  path: readonly PropertyKey[],
  message: string,
): string {
  const layer = originOf(layers, path);
  const where = layer === null ? '' : `${layer.origin(path)}: `;
  return `${where}${path.map(String).join('.')}: ${message}`;
}

function originOf(
  layers: readonly ConfigLayer[],
  path: readonly PropertyKey[],
): ConfigLayer | null {
  for (let length = path.length; length > 0; length--) {
    const at = path.slice(0, length);
    const layer = layers.find(({ values }) => getIn(values, at) !== undefined);
    if (layer !== undefined) return layer;
  }
  return null;
}

function invalid(problems: readonly string[]): NightshiftError {
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  const list = problems.map((problem) => `  ${problem}`).join('\n');
  return new NightshiftError('config_invalid', `the configuration has ${count}:\n${list}`);
}
