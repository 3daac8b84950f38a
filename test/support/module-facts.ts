import ts from 'typescript';

/** One way in which a file refers to another module. */
export interface ImportFact {
  readonly specifier: string;
  /** Erased by the compiler: nothing is loaded at run time. */
  readonly typeOnly: boolean;
  readonly line: number;
}

/** An exported declaration and whether a doc comment stands above it. */
export interface ExportFact {
  readonly name: string;
  readonly documented: boolean;
  readonly line: number;
}

export interface ModuleFacts {
  readonly imports: readonly ImportFact[];
  readonly exports: readonly ExportFact[];
  readonly lines: number;
  /** `Date.now`, `Buffer`, `process.env`: dotted or plain names that are read. */
  readonly names: readonly { readonly name: string; readonly line: number }[];
}

/** Reads a module without running or type-checking it. */
export function factsOf(fileName: string, text: string): ModuleFacts {
  const source = ts.createSourceFile(fileName, text, ts.ScriptTarget.ES2023, true);
  const imports: ImportFact[] = [];
  const names: { name: string; line: number }[] = [];
  const lineOf = (node: ts.Node) => source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
  const visit = (node: ts.Node): void => {
    const found = importOf(node);
    if (found) imports.push({ ...found, line: lineOf(node) });
    const name = nameOf(node);
    if (name) names.push({ name, line: lineOf(node) });
    ts.forEachChild(node, visit);
  };
  visit(source);
  const exports = source.statements.flatMap((statement, index) =>
    exportsOf(statement, source.statements[index - 1]).map((fact) => ({
      ...fact,
      line: lineOf(statement),
    })),
  );
  return { imports, exports, names, lines: text.split('\n').length };
}

function importOf(node: ts.Node): { specifier: string; typeOnly: boolean } | null {
  if (ts.isImportDeclaration(node)) {
    return stringOf(node.moduleSpecifier, isErased(node.importClause));
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
    return stringOf(node.moduleSpecifier, node.isTypeOnly || allTypes(node.exportClause));
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return stringOf(node.argument.literal, true);
  }
  if (ts.isExternalModuleReference(node)) return stringOf(node.expression, false);
  if (ts.isCallExpression(node) && loads(node)) return stringOf(node.arguments[0], false);
  return null;
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

function stringOf(node: ts.Node | undefined, typeOnly: boolean) {
  return node && ts.isStringLiteralLike(node) ? { specifier: node.text, typeOnly } : null;
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
): { name: string; documented: boolean }[] {
  if (!isExported(statement)) return [];
  const documented =
    isDocumented(statement) || sharesComment(statement, before) || isParameter(statement);
  const named = ts.isVariableStatement(statement)
    ? statement.declarationList.declarations.map((declaration) => declaration.name.getText())
    : [(statement as ts.DeclarationStatement).name?.getText() ?? 'default'];
  return named.map((name) => ({ name, documented }));
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
