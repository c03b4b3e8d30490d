/** The candidate's folder, wherever it lies. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: the token is written like that
export const PROJECT_TOKEN = "${PROJECT_ROOT}";
/** The Python that evaluators are run with. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: the token is written like that
export const PYTHON_TOKEN = "${PYTHON}";
