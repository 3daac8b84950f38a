import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from '@temporalio/worker';
import { MAINTENANCE_SCENARIOS } from '../workflows/maintenance-scenarios';
import { SCENARIOS } from '../workflows/scenarios';
import { tracingPlugin, workflowBundle } from '../workflows/play-scenario';

const FOLDER = join(__dirname, 'histories');
const FILES = readdirSync(FOLDER).filter((file) => file.endsWith('.json'));

function history(file: string): {
  events: {
    eventType: string;
    activityTaskScheduledEventAttributes?: { activityType?: { name?: string } };
  }[];
} {
  return JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as ReturnType<typeof history>;
}

async function replay(recorded: unknown): Promise<void> {
  await Worker.runReplayHistory(
    { workflowBundle: await workflowBundle(), plugins: [tracingPlugin()] },
    recorded,
  );
}

beforeAll(() => workflowBundle(), 60_000);

describe('recorded histories', () => {
  it('exist for every scenario', () => {
    const recorded = new Set(FILES.map((file) => file.split('.')[0]));
    expect([...recorded].sort()).toEqual(
      [...Object.keys(SCENARIOS), ...Object.keys(MAINTENANCE_SCENARIOS)].sort(),
    );
  });

  it.each(FILES)('replay against the present workflows: %s', async (file) => {
    await expect(replay(history(file))).resolves.toBeUndefined();
  });

  it('do not replay against a changed workflow', async () => {
    const recorded = history('completed.0.json');
    const ingest = recorded.events.find(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'ingest',
    );
    if (ingest?.activityTaskScheduledEventAttributes?.activityType === undefined) {
      throw new Error('no ingest in the recorded history');
    }
    ingest.activityTaskScheduledEventAttributes.activityType.name = 'somethingElse';
    await expect(replay(recorded)).rejects.toThrow(/[Nn]ondeterminism|DeterminismViolation/);
  });
});
