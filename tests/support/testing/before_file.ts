/** `deno task test` loads this module before each test file. */

import { countAtEnd } from "./files_done.ts";

countAtEnd();
