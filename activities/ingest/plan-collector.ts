import type { ScannedRequest } from '../../core/openai/line-scanner';
import type { ModelMap } from '../../core/plan/model-map';
import { createPlanBuilder, type PlanBuilder } from '../../core/plan/plan-builder';
import { safeModelNames } from '../../core/plan/safe-model';

/** The plans of a batch while its input is read: 16 bytes a request. */
export interface PlanCollector {
  add(request: ScannedRequest): void;
  /** Every routed model with its builder, in order of first appearance. */
  models(): CollectedModel[];
  /** Every model that a line names, routed or not. */
  modelNames(): string[];
  /** What `model_map.json` says of these plans under `nonce`. */
  modelMap(nonce: string, lineCount: number): ModelMap;
}

/** The plan of one model, not yet built. */
export interface CollectedModel {
  readonly model: string;
  readonly safe: string;
  readonly builder: PlanBuilder;
}

/** An empty {@link PlanCollector}; a model is looked up by `isRouted` once. */
export function createPlanCollector(isRouted: (model: string) => boolean): PlanCollector {
  const builders = new Map<string, PlanBuilder>();
  const unrouted = new Map<string, number>();

  const builderOf = (model: string): PlanBuilder | null => {
    const known = builders.get(model);
    if (known !== undefined) return known;
    if (unrouted.has(model) || !isRouted(model)) return null;
    const builder = createPlanBuilder();
    builders.set(model, builder);
    return builder;
  };
  const models = (): CollectedModel[] => {
    const safeNames = safeModelNames([...builders.keys()]);
    return [...builders].map(([model, builder]) => {
      return { model, safe: safeNames.get(model) ?? model, builder };
    });
  };
  return {
    add(request) {
      const builder = builderOf(request.model);
      if (builder !== null) builder.add(request);
      else unrouted.set(request.model, (unrouted.get(request.model) ?? 0) + 1);
    },
    models,
    modelNames: () => [...builders.keys(), ...unrouted.keys()],
    modelMap: (nonce, lineCount) => ({
      version: 1,
      nonce,
      line_count: lineCount,
      model_to_safe: Object.fromEntries(models().map(({ model, safe }) => [model, safe])),
      safe_to_model: Object.fromEntries(models().map(({ model, safe }) => [safe, model])),
      entries: Object.fromEntries(models().map(({ safe, builder }) => [safe, builder.count])),
      unrouted: Object.fromEntries(unrouted),
    }),
  };
}
