import type { TranslationScope } from './scope';
import { isAbsent, type Json, type Values } from './values';

/** A function that the model may call. */
export interface ChatTool {
  readonly name: string;
  readonly description: string | null;
  /** A JSON schema; null for a function without parameters. */
  readonly parameters: Json | null;
  /** Whether calls must match the schema of the parameters. */
  readonly isStrict: boolean;
  /** Of the tool in the request, such as `tools[0]`. */
  readonly path: string;
}

/** Which functions the model must call. */
export type ToolChoice =
  | { readonly kind: 'auto' | 'none' | 'required' }
  | { readonly kind: 'tool'; readonly name: string };

/** Reads `tools`. Formats have functions only. */
export function readTools(
  value: unknown,
  values: Values,
  scope: TranslationScope,
): readonly ChatTool[] {
  if (isAbsent(value)) return [];
  return values.array(value, 'tools').map((one, i) => {
    const path = `tools[${i}]`;
    const tool = values.object(one, path);
    if (tool['type'] !== 'function')
      scope.refuse(`${path}.type`, 'only functions can be expressed');
    const given = values.object(tool['function'], `${path}.function`);
    const { parameters } = given;
    return {
      name: values.text(given['name'], `${path}.function.name`),
      description: values.textOrNull(given['description'], `${path}.function.description`),
      parameters: isAbsent(parameters)
        ? null
        : values.object(parameters, `${path}.function.parameters`),
      isStrict: values.booleanOrNull(given['strict'], `${path}.function.strict`) === true,
      path,
    };
  });
}

/** Reads `tool_choice`; null if the request leaves it to the model. */
export function readToolChoice(
  value: unknown,
  values: Values,
  scope: TranslationScope,
): ToolChoice | null {
  if (isAbsent(value)) return null;
  if (value === 'auto' || value === 'none' || value === 'required') return { kind: value };
  const choice = values.object(value, 'tool_choice');
  if (choice['type'] !== 'function') {
    return scope.refuse('tool_choice', 'expected auto, none, required or a function');
  }
  const given = values.object(choice['function'], 'tool_choice.function');
  return { kind: 'tool', name: values.text(given['name'], 'tool_choice.function.name') };
}
