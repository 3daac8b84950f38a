import type { ScannedRequest } from '../../core/openai/scan-sink';
import type { ModelMap } from '../../core/plan/model-map';
import { createPlanBuilder, type PlanBuilder } from '../../core/plan/plan-builder';
import { safeModelNames } from '../../core/names/safe-model';

/** The plans of a batch while its input is read: 16 bytes per request, and 1.6 % of its prompts. */
export interface PlanCollector {
  add(request: ScannedRequest): void;
  /** Counts a request that stays outside all plans, because it names a file that there is not. */
  addWithoutFile(model: string): void;
  /** Every model with a plan, in order of first appearance. */
  models(): CollectedModel[];
  /** Every model that a line names. */
  modelNames(): string[];
  /** Models that had no route when a line first named them. */
  readonly unknown: UnknownModels;
  /** The content of `model_map.json` for these plans under `nonce`. */
  modelMap(nonce: string, lineCount: number): ModelMap;
}

/** Models without a route. */
export interface UnknownModels {
  /** Models with a plan. They are looked up again later. */
  readonly planned: ReadonlySet<string>;
  /** Models without a plan, with the number of their lines. */
  readonly unplanned: ReadonlyMap<string, number>;
}

/** The plan of one model, before it is written. */
export interface CollectedModel {
  readonly model: string;
  readonly safeModel: string;
  readonly builder: PlanBuilder;
}

/** Which models get a plan. */
export interface PlanCollectorOptions {
  /** Called once for each model while lines are read, and again for the map. */
  isRouted(model: string): boolean;
  /** How many models without a route get a plan. */
  readonly maxUndecided: number;
}

/** An empty {@link PlanCollector}. */
export function createPlanCollector(options: PlanCollectorOptions): PlanCollector {
  const builders = new Map<string, PlanBuilder>();
  const planned = new Set<string>();
  const unplanned = new Map<string, number>();
  const withoutFile = new Map<string, number>();

  const hasPlan = (model: string): boolean => {
    if (unplanned.has(model)) return false;
    if (options.isRouted(model)) return true;
    if (planned.size >= options.maxUndecided) return false;
    planned.add(model);
    return true;
  };
  /** Those of the latest request. Most have the same model as the one before. */
  let [model, builder]: [string | null, PlanBuilder | null] = [null, null];
  const builderOf = (name: string): PlanBuilder | null => {
    if (name !== model) [model, builder] = [name, foundBuilder(name)];
    return builder;
  };
  const foundBuilder = (model: string): PlanBuilder | null => {
    const known = builders.get(model);
    if (known !== undefined) return known;
    if (!hasPlan(model)) return null;
    const builder = createPlanBuilder();
    builders.set(model, builder);
    return builder;
  };
  const models = (): CollectedModel[] => {
    const safeNames = safeModelNames([...builders.keys()]);
    return [...builders].map(([model, builder]) => {
      return { model, safeModel: safeNames.get(model) ?? model, builder };
    });
  };
  const undecided = (): string[] => {
    const still = models().filter(({ model }) => planned.has(model) && !options.isRouted(model));
    return still.map(({ safeModel }) => safeModel);
  };
  return {
    add(request) {
      const builder = builderOf(request.model);
      if (builder !== null) builder.add(request, request.chain);
      else countOne(unplanned, request.model);
    },
    addWithoutFile: (model) => countOne(withoutFile, model),
    models,
    modelNames: () => [
      ...new Set([...builders.keys(), ...unplanned.keys(), ...withoutFile.keys()]),
    ],
    unknown: { planned, unplanned },
    modelMap: (nonce, lineCount) => {
      const unrouted = sums(unplanned, withoutFile);
      return mapOf(models(), { nonce, lineCount, unrouted, undecided: undecided() });
    },
  };
}

/** What a model map says beside its models. */
interface MapFacts {
  readonly nonce: string;
  readonly lineCount: number;
  readonly unrouted: ReadonlyMap<string, number>;
  /** Safe names. */
  readonly undecided: readonly string[];
}

function mapOf(models: readonly CollectedModel[], facts: MapFacts): ModelMap {
  const { nonce, lineCount, unrouted, undecided } = facts;
  return {
    version: 1,
    nonce,
    line_count: lineCount,
    model_to_safe: Object.fromEntries(models.map(({ model, safeModel }) => [model, safeModel])),
    safe_to_model: Object.fromEntries(models.map(({ model, safeModel }) => [safeModel, model])),
    entries: Object.fromEntries(models.map(({ safeModel, builder }) => [safeModel, builder.count])),
    unrouted: Object.fromEntries(unrouted),
    ...(undecided.length === 0 ? {} : { undecided }),
  };
}

function countOne(counts: Map<string, number>, model: string): void {
  counts.set(model, (counts.get(model) ?? 0) + 1);
}

function sums(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): Map<string, number> {
  const models = new Set([...a.keys(), ...b.keys()]);
  return new Map([...models].map((model) => [model, (a.get(model) ?? 0) + (b.get(model) ?? 0)]));
}
