import ts from 'typescript';

/** One way in which a file refers to another module. */
export interface ImportFact {
  readonly specifier: string;
  /** Erased by the compiler: nothing is loaded at run time. */
  readonly typeOnly: boolean;
  /** Names of the exports that it takes; null: possibly all of them. */
  readonly names: readonly string[] | null;
  readonly line: number;
}

/** An exported declaration. */
export interface ExportFact {
  readonly name: string;
  /** Whether it has a doc comment. */
  readonly documented: boolean;
  /** An interface or a type alias, which exists at compile time only. */
  readonly isType: boolean;
  /** Whether its own module mentions it outside of the declaration. */
  readonly usedInFile: boolean;
  readonly line: number;
}

/** A function and how long it is. */
export interface FunctionFact {
  readonly line: number;
  /** Lines from its first to its last, without blank lines and comments. */
  readonly lines: number;
}

export interface ModuleFacts {
  readonly imports: readonly ImportFact[];
  readonly exports: readonly ExportFact[];
  readonly lines: number;
  /** `Date.now`, `Buffer`, `process.env`: dotted or plain names that are read. */
  readonly names: readonly { readonly name: string; readonly line: number }[];
  /** Every function except the callbacks of `describe`, which hold tests as a file does. */
  readonly functions: readonly FunctionFact[];
}

/** Reads a module without running or type-checking it. */
export function factsOf(fileName: string, text: string): ModuleFacts {
  const source = ts.createSourceFile(fileName, text, ts.ScriptTarget.ES2023, true);
  const imports: ImportFact[] = [];
  const names: { name: string; line: number }[] = [];
  const functions: FunctionFact[] = [];
  const identifiers: ts.Identifier[] = [];
  const lineOf = (node: ts.Node) => source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
  const visit = (node: ts.Node): void => {
    const line = lineOf(node);
    const found = importOf(node);
    if (found) imports.push({ ...found, line });
    const name = nameOf(node);
    if (name) names.push({ name, line });
    if (ts.isIdentifier(node)) identifiers.push(node);
    if (ts.isFunctionLike(node) && !isSuite(node)) functions.push({ line, lines: codeLines(node) });
    ts.forEachChild(node, visit);
  };
  visit(source);
  const exports = source.statements.flatMap((statement, index) =>
    exportsOf(statement, source.statements[index - 1]).map((fact) => ({
      ...fact,
      usedInFile: identifiers.some(
        (one) => one.text === fact.name && (one.pos < statement.pos || one.end > statement.end),
      ),
      line: lineOf(statement),
    })),
  );
  return { imports, exports, names, functions, lines: text.split('\n').length };
}

/** The callback of `describe(…)`, `describe.each(…)(…)` or `(… ? describe.skip : describe)(…)`. */
function isSuite(node: ts.Node): boolean {
  if (!ts.isCallExpression(node.parent)) return false;
  return /\bdescribe\b/.test(node.parent.expression.getText());
}

function codeLines(node: ts.Node): number {
  const code = node.getText().replace(/\/\*[\s\S]*?\*\//g, '');
  return code.split('\n').filter((line) => !/^\s*(\/\/.*)?$/.test(line)).length;
}

type Reference = Omit<ImportFact, 'line'>;

function importOf(node: ts.Node): Reference | null {
  if (ts.isImportDeclaration(node)) {
    const { importClause } = node;
    const names = importClause?.name ? null : namesOf(importClause?.namedBindings);
    return reference(node.moduleSpecifier, isErased(importClause), importClause ? names : []);
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
    const typeOnly = node.isTypeOnly || allTypes(node.exportClause);
    return reference(node.moduleSpecifier, typeOnly, namesOf(node.exportClause));
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return reference(node.argument.literal, true, null);
  }
  if (ts.isExternalModuleReference(node)) return reference(node.expression, false, null);
  if (ts.isCallExpression(node) && loads(node)) {
    return reference(node.arguments[0], false, destructured(node));
  }
  return null;
}

function reference(
  specifier: ts.Node | undefined,
  typeOnly: boolean,
  names: readonly string[] | null,
): Reference | null {
  if (!specifier || !ts.isStringLiteralLike(specifier)) return null;
  return { specifier: specifier.text, typeOnly, names };
}

/** Names as the other module exports them; null for `* as x`. */
function namesOf(bindings: ts.NamedImportBindings | ts.NamedExportBindings | undefined) {
  if (!bindings || !(ts.isNamedImports(bindings) || ts.isNamedExports(bindings))) return null;
  return bindings.elements.map(({ propertyName, name }) => (propertyName ?? name).text);
}

/** Names of `const { a, b } = require('…')`, also with `await`; null for other uses. */
function destructured(call: ts.CallExpression): string[] | null {
  const value = ts.isAwaitExpression(call.parent) ? call.parent : call;
  const declaration = value.parent;
  if (!ts.isVariableDeclaration(declaration) || !ts.isObjectBindingPattern(declaration.name)) {
    return null;
  }
  return declaration.name.elements.map(({ propertyName, name }) =>
    (propertyName ?? name).getText(),
  );
}

/** `import('…')` and `require('…')`; `require.resolve` loads nothing and is not one of them. */
function loads(call: ts.CallExpression): boolean {
  const callee = call.expression;
  return (
    callee.kind === ts.SyntaxKind.ImportKeyword ||
    (ts.isIdentifier(callee) && callee.text === 'require')
  );
}

function isErased(clause: ts.ImportClause | undefined): boolean {
  if (!clause) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  return clause.name === undefined && allTypes(clause.namedBindings);
}

function allTypes(bindings: ts.NamedImportBindings | ts.NamedExportBindings | undefined): boolean {
  if (!bindings || !(ts.isNamedImports(bindings) || ts.isNamedExports(bindings))) return false;
  return bindings.elements.length > 0 && bindings.elements.every((element) => element.isTypeOnly);
}

function nameOf(node: ts.Node): string | null {
  if (ts.isNewExpression(node) && !node.arguments?.length)
    return `new ${node.expression.getText()}`;
  if (ts.isPropertyAccessExpression(node)) return node.getText();
  const parent = node.parent as ts.Node | undefined;
  const isOwnName =
    parent && (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent))
      ? parent.name === node
      : false;
  return ts.isIdentifier(node) && !isOwnName ? node.text : null;
}

function exportsOf(
  statement: ts.Statement,
  before: ts.Statement | undefined,
): Omit<ExportFact, 'line' | 'usedInFile'>[] {
  if (!isExported(statement)) return [];
  const documented =
    isDocumented(statement) || sharesComment(statement, before) || isParameter(statement);
  const named = ts.isVariableStatement(statement)
    ? statement.declarationList.declarations.map((declaration) => declaration.name.getText())
    : [(statement as ts.DeclarationStatement).name?.getText() ?? 'default'];
  const isType = ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
  return named.map((name) => ({ name, documented, isType }));
}

function isExported(statement: ts.Statement): boolean {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

function isDocumented(statement: ts.Statement): boolean {
  return ts.getJSDocCommentsAndTags(statement).some(ts.isJSDoc);
}

/** The shape of a function's one argument: explained at the function, and member by member. */
function isParameter(statement: ts.Statement): boolean {
  if (!ts.isInterfaceDeclaration(statement) && !ts.isTypeAliasDeclaration(statement)) return false;
  return /(Options|Input|Deps|Query|Flags)$/.test(statement.name.text);
}

/** One comment serves a run of constants, and a type that is named after the value above it. */
function sharesComment(statement: ts.Statement, before: ts.Statement | undefined): boolean {
  if (!before || !isExported(before) || !ts.isVariableStatement(before)) return false;
  const isAdjacent = !/\n\s*\n/.test(
    statement.getFullText().slice(0, statement.getLeadingTriviaWidth()),
  );
  const isPartner = ts.isTypeAliasDeclaration(statement) && mentions(statement, before);
  if (!(ts.isVariableStatement(statement) && isAdjacent) && !isPartner) return false;
  return isDocumented(before) || ts.isVariableStatement(statement);
}

/** `type Color = (typeof COLORS)[number]` directly below `const COLORS`. */
function mentions(type: ts.TypeAliasDeclaration, values: ts.VariableStatement): boolean {
  const text = type.type.getText();
  return values.declarationList.declarations.some((one) =>
    text.includes(`typeof ${one.name.getText()}`),
  );
}
