import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { loadConfig, type Config } from '../../platform/config';
import { packageRoot } from '../../platform/package-root';
import { findGoTool } from '../support/go-tool';

/* eslint-disable @typescript-eslint/no-explicit-any -- manifests have the types of Kubernetes, which we lack */

/** Folder of the chart. */
export const CHART = 'deploy/helm/nightshift';
/** Helm built from source claims to be for an old Kubernetes. */
export const KUBERNETES = ['--kube-version', '1.30.0'];
/** Examples of values. */
export const EXAMPLES = fs.readdirSync(path.join(packageRoot(), CHART, 'ci'));

/** An object of Kubernetes. */
export type Manifest = any;

/** One container that the chart runs. */
export interface Process {
  readonly name: string;
  readonly kind: string;
  readonly pod: Manifest;
  readonly container: Manifest;
}

/** The chart, rendered with one example of values. */
export interface Rendered {
  readonly name: string;
  readonly manifests: readonly Manifest[];
  readonly all: readonly Process[];
}

let helm: string;
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-helm-'));

/** Runs Helm in the root of the repository. */
export function runHelm(args: readonly string[]): {
  status: number | null;
  stdout: string;
  stderr: string;
} {
  return spawnSync(helm, args, { cwd: packageRoot(), encoding: 'utf8' });
}

/** The objects that the chart makes of these arguments. */
export function render(args: readonly string[]): Manifest[] {
  const done = runHelm(['template', 'r', CHART, ...KUBERNETES, '--namespace', 'prod', ...args]);
  if (done.status !== 0) throw new Error(done.stderr);
  return parseAllDocuments(done.stdout)
    .map((document) => document.toJS())
    .filter((manifest) => manifest !== null);
}

/** The objects that the chart makes of one example. */
export function example(name: string): Manifest[] {
  return render(['--values', path.join(CHART, 'ci', name)]);
}

/** The containers among them. */
export function processes(manifests: readonly Manifest[]): Process[] {
  return manifests
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map(({ kind, metadata, spec }) => {
      const [container] = spec.template.spec.containers;
      return { name: metadata.name, kind, pod: spec.template, container };
    });
}

/** Name of the file of this test that stands for a file of a Secret. */
function secretFile(mounted: string): string {
  return path.join(scratch, mounted.replaceAll('/', '_'));
}

/** The settings that a process of the chart runs with. */
export function configOf({ pod, container }: Process, manifests: readonly Manifest[]): Config {
  const { configMap } = pod.spec.volumes.find((one: Manifest) => one.name === 'config');
  const map = manifests.find(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMap.name,
  );
  const file = path.join(scratch, 'nightshift.yaml');
  fs.writeFileSync(file, map.data['nightshift.yaml']);
  const env: Record<string, string> = {};
  for (const { name, value } of container.env) {
    env[name] = value ?? 'from-a-secret';
    if (!name.endsWith('_FILE')) continue;
    env[name] = secretFile(value);
    fs.writeFileSync(env[name], 'a-secret');
  }
  const isGateway = container.args[0] === 'gateway';
  return loadConfig({ file, env, needs: isGateway ? ['pools'] : ['gateway', 'postgres'] });
}

/** Files that a process reads, by the variables that name them. */
export function namedFiles({ container }: Process): string[] {
  const named = container.env
    .filter(({ name }: Manifest) => /_(FILE|DIR|PATH)$/.test(name))
    .map(({ value }: Manifest) => value as string);
  const { args } = container;
  return [...named, args[args.indexOf('--config') + 1]];
}

/** Whether a file is in a mount, under a name that its Secret, ConfigMap or folder has. */
export function isMounted(file: string, { pod, container }: Process): boolean {
  const mounts = container.volumeMounts as Manifest[];
  const mount = mounts.find(({ mountPath }) => `${file}/`.startsWith(`${mountPath}/`));
  const volume = pod.spec.volumes.find(({ name }: Manifest) => name === mount?.name);
  const items = volume?.secret?.items as { path: string }[] | undefined;
  const inside = path.relative(mount?.mountPath ?? '/', file);
  return volume !== undefined && (items?.some((item) => item.path === inside) ?? true);
}

/** Whether a selector selects these labels. */
export function labelsMatch(
  selector: Record<string, string>,
  labels: Record<string, string>,
): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

/** Must be called first. */
export async function findHelm(): Promise<void> {
  helm = (await findGoTool('helm'))!;
}

/** Path of a file that {@link removeScratch} removes. */
export function scratchFile(name: string): string {
  return path.join(scratch, name);
}

/** Removes what the functions above wrote. */
export function removeScratch(): void {
  fs.rmSync(scratch, { recursive: true });
}
