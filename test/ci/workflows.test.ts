import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';
import { packageRoot } from '../../platform/package-root';
import { version } from '../../platform/version';
import { exists, read } from '../deployment/repository';

interface Step {
  readonly id?: string;
  readonly with?: Readonly<Record<string, string>>;
  readonly uses?: string;
  readonly run?: string;
}
interface Workflow {
  readonly permissions?: unknown;
  readonly jobs: Readonly<
    Record<string, { steps: Step[]; needs?: string; strategy?: { matrix: { node: string[] } } }>
  >;
}

const FOLDER = '.github/workflows';
const FILES = fs.readdirSync(path.join(packageRoot(), FOLDER));
const known = JSON.parse(read('package.json')) as {
  scripts: Record<string, string>;
  engines: { node: string };
};

describe.each(FILES)('the workflow %s', (file) => {
  const text = read(`${FOLDER}/${file}`);
  const workflow = parse(text) as Workflow;
  const jobs = Object.values(workflow.jobs);
  const steps = jobs.flatMap((job) => job.steps);

  it('pins every action by commit, and names its version', () => {
    const lines = [...text.matchAll(/uses: (.*)/g)].map(([, line]) => line ?? '');
    expect(lines.length).toBeGreaterThan(0);
    expect(
      lines.filter((line) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)),
    ).toEqual([]);
  });

  it('pins each action to one commit', () => {
    const uses = new Set(steps.flatMap((step) => step.uses ?? []));
    const actions = [...uses].map((one) => one.split('@')[0]);
    expect(new Set(actions).size).toBe(actions.length);
  });

  it('may only read the repository, unless a job says otherwise', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
  });

  it('runs files, scripts and jobs that exist', () => {
    const commands = steps.map(({ run = '' }) => run).join('\n');
    const files = [...commands.matchAll(/(?:^|\s)((?:\.ci|deploy|cli)\/[\w./-]+)/g)];
    expect(files.map(([, name]) => name ?? '').filter((name) => !exists(name))).toEqual([]);
    const scripts = [...commands.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name ?? '');
    expect(scripts.filter((name) => !(name in known.scripts))).toEqual([]);
    const needed = jobs.flatMap(({ needs }) => needs ?? []);
    expect(Object.keys(workflow.jobs)).toEqual(expect.arrayContaining(needed));
  });

  it('puts no text of others into a shell script', () => {
    // An expression in a script is replaced before the shell reads it.
    expect(steps.filter(({ run = '' }) => run.includes('${{'))).toEqual([]);
  });
});

it('CI runs every check, on the oldest Node that is supported and on newer ones', () => {
  const { jobs } = parse(read(`${FOLDER}/ci.yml`)) as Workflow;
  expect(jobs['check']?.steps.map(({ run }) => run)).toContain('.ci/run');
  const versions = jobs['check']?.strategy?.matrix.node ?? [];
  expect(versions).toEqual(['20', '22', '24']);
  expect(known.engines.node).toBe(`>=${versions[0]}.19`);
});

it('a release gives the image the tag that its chart asks for', () => {
  const { jobs } = parse(read(`${FOLDER}/release.yml`)) as Workflow;
  const steps = jobs['image']?.steps ?? [];
  const [, id = '', name = ''] =
    /:\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}$/.exec(
      steps.flatMap((step) => step.with?.['tags'] ?? [])[0] ?? '',
    ) ?? [];
  const script = steps.find((step) => step.id === id)?.run ?? '';
  const scratch = fs.mkdtempSync(path.join(tmpdir(), 'nightshift-release-'));
  const output = path.join(scratch, 'output');
  const env = { GITHUB_REF_NAME: `v${version()}`, GITHUB_OUTPUT: output };
  execFileSync('bash', ['--norc', '-ec', script], { env });
  const chart = parse(read('deploy/helm/nightshift/Chart.yaml')) as { appVersion: string };
  expect(fs.readFileSync(output, 'utf8')).toBe(`${name}=${chart.appVersion}\n`);
  fs.rmSync(scratch, { recursive: true });
});

it('a release runs every check before anything is published', () => {
  const { jobs } = parse(read(`${FOLDER}/release.yml`)) as Workflow;
  expect(jobs['check']?.steps.map(({ run }) => run)).toContain('.ci/run');
  const others = Object.entries(jobs).filter(([name]) => name !== 'check');
  expect(others.map(([, { needs }]) => needs)).toEqual(others.map(() => 'check'));
});
