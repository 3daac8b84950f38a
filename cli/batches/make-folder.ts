import { mkdir } from 'node:fs/promises';
import { NightshiftError } from '../../core/errors';

/** Makes the folder that a flag names, if there is none. @throws invalid_request */
export async function makeFolder(dir: string, flag: string): Promise<void> {
  await mkdir(dir, { recursive: true }).catch((cause: Error) => {
    const message = `cannot make the folder ${dir} for ${flag}: ${cause.message}`;
    throw new NightshiftError('invalid_request', message, { cause });
  });
}
