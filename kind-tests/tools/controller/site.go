package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// finalizer keeps a site until the reconciler has seen that it goes.
const finalizer = "example.com/site"

var version = schema.GroupVersion{Group: "example.com", Version: "v1"}

// Site is a type with a Deployment for each object.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Ready      int32              `json:"ready"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitzero"`
}

// SiteList is a list of sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

func (s *Site) DeepCopyObject() runtime.Object {
	copied := *s
	s.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = append([]metav1.Condition(nil), s.Status.Conditions...)
	return &copied
}

func (l *SiteList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = nil
	for at := range l.Items {
		copied.Items = append(copied.Items, *l.Items[at].DeepCopyObject().(*Site))
	}
	return &copied
}

// Reconciler keeps a Deployment for each site.
type Reconciler struct {
	client.Client
	Events events.EventRecorder
}

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(site, finalizer) {
			return ctrl.Result{}, r.Update(ctx, site)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		return ctrl.Result{}, r.Update(ctx, site)
	}
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = site.Namespace, site.Name
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		labels := map[string]string{"site": site.Name}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
		deployment.Spec.Replicas = &site.Spec.Replicas
		return controllerutil.SetControllerReference(site, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if done != controllerutil.OperationResultNone {
		r.Events.Eventf(site, deployment, corev1.EventTypeNormal, "Scaled", "Scale",
			"%d replicas", site.Spec.Replicas)
	}
	before := site.DeepCopyObject().(*Site)
	site.Status.Ready = deployment.Status.ReadyReplicas
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting"}
	if site.Status.Ready == site.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Running"
	}
	meta.SetStatusCondition(&site.Status.Conditions, ready)
	return ctrl.Result{}, r.Status().Patch(ctx, site, client.MergeFrom(before))
}

// definitions are the types that the server is started with.
func definitions() []*apiextensionsv1.CustomResourceDefinition {
	zero, open := 0.0, true
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	root := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{
			"replicas": {Type: "integer", Format: "int32", Minimum: &zero},
		}),
		"status": {Type: "object", XPreserveUnknownFields: &open},
	})
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "sites.example.com"
	definition.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: version.Group,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: "sites", Singular: "site", Kind: "Site", ListKind: "SiteList",
		},
		Scope: apiextensionsv1.NamespaceScoped,
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name:         version.Version,
			Served:       true,
			Storage:      true,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}},
	}
	return []*apiextensionsv1.CustomResourceDefinition{definition}
}
