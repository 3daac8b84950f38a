import type { TerminalStatus } from '../../core/batch/status';
import type { RecoveryAction } from './types';
import type { SweepKind } from '../sweep/types';

/** Told what reconcile and sweep do, for metrics; must not throw. */
export interface MaintenanceObserver {
  recovered(action: RecoveryAction): void;
  /** A batch was ended without its workflow. */
  ended(status: TerminalStatus): void;
  /** A batch, or a page, that could not be looked at or mended. */
  failed(): void;
  cycleEnded(tookMs: number): void;
  removed(kind: SweepKind, count: number): void;
}
