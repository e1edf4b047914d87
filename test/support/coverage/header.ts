/** A function that a C header offers to programs. */
export interface HeaderFunction {
  name: string;
  /** Compiled into the caller, so that no symbol tells of its use: an inline function, or one behind a macro. */
  inline: boolean;
  /** Called by an inline function of the header, and so imported by a program that does not name it. */
  called: boolean;
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*/g, '');
}

/** The text between top-level braces and semicolons: of functions their declarations or heads. */
function topLevelDeclarations(text: string): string[] {
  const code = text.replace(/^[ \t]*#(?:.*\\\n)*.*$/gm, '').replace(/extern\s+"C"\s*\{/g, '');
  const declarations: string[] = [];
  let depth = 0;
  let current = '';
  for (const character of code) {
    if (character === '{') {
      depth += 1;
    } else if (character === '}') {
      depth = Math.max(0, depth - 1);
      // The body of a type has a semicolon after it, that of a function has none.
      if (depth === 0 && current.includes('(')) {
        declarations.push(current);
        current = '';
      }
    } else if (depth === 0 && character === ';') {
      declarations.push(current);
      current = '';
    } else if (depth === 0) {
      current += character;
    }
  }
  return declarations;
}

/** The public functions of a header, each once. A name that begins with an underscore is not for programs. */
export function publicFunctions(text: string): HeaderFunction[] {
  const code = withoutComments(text);
  const macros = new Set([...code.matchAll(/^[ \t]*#[ \t]*define[ \t]+(\w+)\(/gm)].map(([, name]) => name!));
  const found = new Map<string, HeaderFunction>();
  for (const declaration of topLevelDeclarations(code)) {
    const plain = declaration.replace(/__attribute(?:_const)?(?:__)?\s*\(\(.*?\)\)/gs, '').trim();
    const name = /(\w+)\s*\(/.exec(plain)?.[1];
    if (name === undefined || plain.startsWith('typedef') || name.startsWith('_')) continue;
    found.set(name, {
      name,
      inline: /\binline\b/.test(plain) || macros.has(name),
      called: [...code.matchAll(new RegExp(`\\b${name}\\s*\\(`, 'g'))].length > 1,
    });
  }
  return [...found.values()];
}
