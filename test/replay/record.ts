import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { packageRoot } from '../../platform/package-root';
import { startTemporal, TEMPORAL_START_MS } from '../support/temporal';
import { MAINTENANCE_SCENARIOS, playMaintenance } from '../workflows/maintenance-scenarios';
import { SCENARIOS } from '../workflows/scenarios';
import { startScenarioPlayer } from '../workflows/play-scenario';

/**
 * Records one history for each scenario. Run it by hand after adding a scenario:
 *
 *     npx jest --testMatch '<rootDir>/test/replay/record.ts'
 *
 * Recorded files are never replaced: what replays today must always replay. A scenario that already has a
 * file is skipped.
 */
const FOLDER = join(__dirname, 'histories');

it(
  'records the scenarios that have no history yet',
  async () => {
    mkdirSync(FOLDER, { recursive: true });
    const player = await startScenarioPlayer();
    for (const [name, create] of missing(SCENARIOS)) {
      const { histories } = await player.play(create());
      histories.forEach((history, run) => write(`${name}.${run}.json`, historyToJSON(history)));
    }
    await player.close();
    const temporal = await startTemporal();
    for (const [name, scenario] of missing(MAINTENANCE_SCENARIOS)) {
      const { histories } = await playMaintenance(temporal, scenario);
      histories.forEach((history, run) => write(`${name}.${run}.json`, historyToJSON(history)));
    }
    await temporal.stop();
  },
  TEMPORAL_START_MS + 240_000,
);

/** The scenarios without a recorded history. */
function missing<T>(scenarios: Readonly<Record<string, T>>): [name: string, scenario: T][] {
  return Object.entries(scenarios).filter(([name]) => !existsSync(join(FOLDER, `${name}.0.json`)));
}

function write(file: string, json: string): void {
  const path = join(FOLDER, file);
  try {
    // Stack traces name the folder of the checkout; a history belongs to no machine.
    writeFileSync(path, json.replaceAll(`${packageRoot()}/`, ''), { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
