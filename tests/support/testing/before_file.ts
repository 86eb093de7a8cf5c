/** `deno task test` loads this module before each test file. */

import { noteAtEnd } from "./files_done.ts";

noteAtEnd();
