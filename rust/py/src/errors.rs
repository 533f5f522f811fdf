//! Rejections and bugs as the exceptions of `kueuecore.errors`.

use kueuecore_wire::configuration::ConfigurationError;
use kueuecore_wire::field_error::{FieldError, ObjectRef, Rejection, Warning, shortened, unquoted};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList};

/// `ManifestError` with one problem per field error.
pub fn manifest_error(py: Python<'_>, rejections: &[Rejection]) -> PyErr {
    let problems = rejections.iter().flat_map(|rejection| {
        rejection.errors.iter().map(move |error| (error, &rejection.object, Some(rejection.index)))
    });
    let problems: PyResult<Vec<_>> =
        problems.map(|(error, object, index)| problem(py, error, Some(object), index)).collect();
    let warnings = rejections.iter().flat_map(|rejection| &rejection.warnings).map(|it| warning(py, it)).collect();
    raise(py, "ManifestError", problems, warnings)
}

/// `ConfigurationError` with one problem per error.
pub fn configuration_error(py: Python<'_>, errors: &[ConfigurationError]) -> PyErr {
    let problems: PyResult<Vec<_>> = errors
        .iter()
        .map(|error| match error {
            ConfigurationError::Field(error) => problem(py, error, None, None),
            other => {
                let kwargs = PyDict::new(py);
                kwargs.set_item("field", other.path())?;
                let text = other.to_string();
                let path = other.path();
                let message = text.strip_prefix(path).map_or(text.as_str(), |rest| rest.trim_start_matches(": "));
                errors_module(py)?.getattr("Problem")?.call((message,), Some(&kwargs))
            }
        })
        .collect();
    raise(py, "ConfigurationError", problems, Ok(Vec::new()))
}

/// `UnknownObjectError`.
pub fn unknown_object(py: Python<'_>, kind: &str, namespace: &str, name: &str) -> PyErr {
    let build = || -> PyResult<Bound<'_, PyAny>> {
        let module = errors_module(py)?;
        let object = module.getattr("ObjectRef")?.call1((kind, name, namespace))?;
        module.getattr("UnknownObjectError")?.call1((object,))
    };
    build().map_or_else(|error| error, PyErr::from_value)
}

/// `EngineBrokenError`; `panic` is the message of the bug, if this call hit it.
pub fn engine_broken(py: Python<'_>, panic: Option<&str>) -> PyErr {
    let build = || -> PyResult<Bound<'_, PyAny>> {
        let class = errors_module(py)?.getattr("EngineBrokenError")?;
        match panic {
            Some(text) => class.call1((format!("a bug in kueuecore broke this engine, please report it: {text}"),)),
            None => class.call0(),
        }
    };
    build().map_or_else(|error| error, PyErr::from_value)
}

fn errors_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("kueuecore.errors")
}

type Problems<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

fn raise<'py>(py: Python<'py>, class: &str, problems: Problems<'py>, warnings: Problems<'py>) -> PyErr {
    let build = || errors_module(py)?.getattr(class)?.call1((problems?, warnings?));
    build().map_or_else(|error| error, PyErr::from_value)
}

/// A `Problem`.
pub fn problem<'py>(
    py: Python<'py>,
    error: &FieldError,
    object: Option<&ObjectRef>,
    index: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let module = errors_module(py)?;
    let kwargs = [("field", error.path.as_str())].into_py_dict(py)?;
    if let Some(value) = &error.value {
        kwargs.set_item("value", plain(py, value)?)?;
    }
    if let Some(object) = object.filter(|o| !o.kind.is_empty()) {
        kwargs.set_item("object", object_ref(&module, object)?)?;
    }
    kwargs.set_item("index", index)?;
    module.getattr("Problem")?.call((error.message(),), Some(&kwargs))
}

/// A rendered value as a Python value: quoted strings unquoted, JSON numbers and booleans as such; anything else stays
/// text.
fn plain<'py>(py: Python<'py>, value: &str) -> PyResult<Bound<'py, PyAny>> {
    if let Some(text) = unquoted(value) {
        return Ok(text.into_pyobject(py)?.into_any());
    }
    match py.import("json")?.call_method1("loads", (value,)) {
        Ok(plain) if !plain.is_instance_of::<PyDict>() && !plain.is_instance_of::<PyList>() => Ok(plain),
        _ => Ok(shortened(value).into_pyobject(py)?.into_any()),
    }
}

fn warning<'py>(py: Python<'py>, warning: &Warning) -> PyResult<Bound<'py, PyAny>> {
    let module = errors_module(py)?;
    let kwargs = [("field", warning.field.as_str())].into_py_dict(py)?;
    kwargs.set_item("object", object_ref(&module, &warning.object)?)?;
    kwargs.set_item("index", warning.index)?;
    module.getattr("Problem")?.call((&warning.message,), Some(&kwargs))
}

fn object_ref<'py>(module: &Bound<'py, PyModule>, object: &ObjectRef) -> PyResult<Bound<'py, PyAny>> {
    module.getattr("ObjectRef")?.call1((&object.kind, &object.name, &object.namespace))
}
