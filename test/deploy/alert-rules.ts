import fs from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { packageRoot } from '../../platform/package-root';

/** One alert as its file has it. */
export interface AlertRule {
  readonly file: string;
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly AlertRule[] }[];
}

/** Folder of the alert rules that are shipped. */
export const RULES_FOLDER = path.join(packageRoot(), 'deploy', 'prometheus', 'rules');

/** Paths of the rule files. */
export function ruleFiles(): string[] {
  return fs.readdirSync(RULES_FOLDER).map((name) => path.join(RULES_FOLDER, name));
}

/** Every alert that is shipped. */
export function alertRules(): AlertRule[] {
  return ruleFiles().flatMap((file) => {
    const { groups } = parse(fs.readFileSync(file, 'utf8')) as RuleFile;
    return groups.flatMap(({ rules }) =>
      rules.map((rule) => ({ ...rule, file: path.basename(file) })),
    );
  });
}
